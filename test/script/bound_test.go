// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// boundValue is the value of the test's secret. No file and no argument of a sandbox has it.
const boundValue = "s3cret-0f-the-test/that+stays=outside"

// vault is a web site, and a repository, for who has the secret.
type vault struct {
	mu   sync.Mutex
	seen map[string]int // requests by host and authorization
}

func (v *vault) count(host, auth string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[host+" "+auth]
}

// openVault serves it until the test ends, and gives who vouches for it.
func openVault(t *testing.T, w *world) (*vault, []byte) {
	t.Helper()
	v := &vault{seen: make(map[string]int)}
	authority, config := certify(t)
	repo := repository(t)
	site := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		auth := r.Header.Get("Authorization")
		v.mu.Lock()
		v.seen[host+" "+auth]++
		v.mu.Unlock()
		switch {
		case auth != "Bearer "+boundValue:
			http.Error(rw, "who are you, "+auth+", of "+r.Header.Get("X-Org")+"?", http.StatusUnauthorized)
		case host == "git.example" && repo != nil:
			repo.ServeHTTP(rw, r)
		default:
			_ = json.NewEncoder(rw).Encode(map[string]any{"welcome": host, "headers": r.Header})
		}
	})
	w.serve(t, site, config)
	return v, authority
}

// clients are programs of the image as anybody uses them: nothing tells them of an authority.
var clients = map[string]string{
	"curl":     `curl -sS -H "Authorization: Bearer $KEY" https://web.example/page`,
	"curl h1":  `curl -sS --http1.1 -H "Authorization: Bearer $KEY" https://web.example/page`,
	"urllib":   `python3 -c 'import os, urllib.request as u; print(u.urlopen(u.Request("https://web.example/page", headers={"Authorization": "Bearer " + os.environ["KEY"]})).read().decode())'`,
	"pip's":    `python3 -c 'import os, pip._vendor.requests as r; print(r.get("https://web.example/page", headers={"Authorization": "Bearer " + os.environ["KEY"]}).text)'`,
	"node":     `node -e 'fetch("https://web.example/page", {headers: {authorization: "Bearer " + process.env.KEY}}).then(r => r.text()).then(t => console.log(t))'`,
	"git":      `rm -rf repo && git clone -q https://git.example/repo.git repo && cat repo/README && echo welcome '***'`,
	"as root":  `curl -sS https://web.example/page`,
	"no stand": `curl -sS -H "Authorization: Basic bWluZQ==" https://web.example/page`,
}

// another puts the first authority of the system's into a file, to trust nothing else.
const another = `sed '/END CERTIFICATE/q' /etc/ssl/certs/ca-certificates.crt > another.pem; `

// search looks through all that a process of the sandbox can read, but itself and what came with the image, for the value, which
// it is told backwards, and for one that is there. It says which it found, and where.
const search = `
import os, sys
wanted = {"the value": sys.argv[1][::-1].encode(), "the other": sys.argv[2][::-1].encode()}
def look(where, b):
    for what, v in wanted.items():
        if v in b: print("found", what, "in", where)
def read(path):
    try:
        with open(path, "rb") as f: look(path, f.read())
    except OSError: pass
for top, dirs, files in os.walk("/", followlinks=False):
    dirs[:] = [d for d in dirs if os.path.join(top, d) not in ("/proc", "/sys", "/dev", "/usr/lib", "/usr/bin", "/usr/share")]
    for f in files:
        path = os.path.join(top, f)
        if os.path.isfile(path) and not os.path.islink(path): read(path)
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) == os.getpid(): continue
    read(f"/proc/{pid}/environ")
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, rights = line.split()[:2]
                if not rights.startswith("r"): continue
                begin, end = (int(x, 16) for x in span.split("-"))
                try:
                    mem.seek(begin); look(f"memory of {pid}", mem.read(end - begin))
                except (OSError, ValueError, OverflowError): pass
    except OSError: pass
print("searched")
`

// noted waits until a refusal is on a sandbox's record: the program may know before the gate.
func noted(t *testing.T, f *field, box, name, reason string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		l := f.log(t, box)
		if refused(l, "tcp", name, "", reason) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not on the record: %+v", l.Items)
		}
	}
}

// TestBoundSecrets shows that programs of an image use what they never have. All of it is in
// a world of the test's own.
func TestBoundSecrets(t *testing.T) {
	images := needRoot(t)
	w := newWorld(t, map[string]netip.Addr{"web.example": shelf, "git.example": shelf, "other.example": shelf})
	v, authority := openVault(t, w)
	f := &field{world: w, api: netip.AddrPortFrom(house, 8080)}
	dir := t.TempDir()
	roots, value := filepath.Join(dir, "roots.pem"), filepath.Join(dir, "value")
	if err := os.WriteFile(roots, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(value, []byte(boundValue+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.open(t, images, "SSL_CERT_FILE="+roots)
	set := []string{"secret", "set", "KEY", "--host", "web.example", "--host", "git.example", "--from-file", value}
	f.must(t, set...)
	f.must(t, "create", "--name", "box", "--allow-domain", "web.example,git.example,other.example")
	run := func(box string, root bool, script string) string {
		t.Helper()
		args := []string{"exec"}
		if root {
			args = append(args, "-u", "root")
		}
		out, _ := f.run(f.server, append(args, box, "-c", script)...)
		return out
	}
	works := func(when, box string) {
		t.Helper()
		if out := run(box, false, clients["curl"]); !strings.Contains(out, "welcome") || strings.Contains(out, boundValue) {
			t.Errorf("%s: %s", when, out)
		}
	}
	for name, script := range clients {
		t.Run(name, func(t *testing.T) {
			if name == "git" && repository(t) == nil {
				t.Skip("this host has no git")
			}
			before := v.count("web.example", "Bearer "+boundValue) + v.count("git.example", "Bearer "+boundValue)
			out := run("box", name == "as root", script)
			if !strings.Contains(out, "welcome") || !strings.Contains(out, "***") || strings.Contains(out, "s3cret") {
				t.Errorf("it says %s", out)
			}
			if v.count("web.example", "Bearer "+boundValue)+v.count("git.example", "Bearer "+boundValue) == before {
				t.Error("nothing came to the host")
			}
		})
	}
	t.Run("OnlyThereAndOnlyByTLS", func(t *testing.T) {
		if out := run("box", false, `curl -sS http://web.example/; curl -sSk https://other.example/; echo; echo "$KEY"`); strings.Contains(out, "welcome") || !strings.Contains(out, "sandpit-secret-KEY") {
			t.Errorf("it says %s", out)
		}
		if v.count("web.example", "") == 0 || v.count("other.example", "") == 0 {
			t.Error("they do not come through without it")
		}
		if l := f.log(t, "box"); !refused(l, "tcp", "web.example", "", "plaintext") {
			t.Errorf("not on the record: %+v", l.Items)
		}
	})
	t.Run("HeadersOfHosts", func(t *testing.T) {
		const ask = `curl -sS -H 'X-Org: its own' https://web.example/page; curl -sS -H 'X-Org: its own' http://web.example/; curl -sSk -H 'X-Org: its own' https://other.example/`
		reach := []string{"network", "set", "box", "restricted", "--allow-domain", "web.example,git.example,other.example"}
		out := f.must(t, append(slices.Clone(reach), "--host-header", "web.example=X-Org: acme")...)
		if shown := f.must(t, "network", "show", "box"); !strings.Contains(shown, "requests to web.example have x-org: acme") {
			t.Errorf("it shows %s, after %s", shown, out)
		}
		if out := run("box", false, ask); !strings.Contains(out, `"X-Org":["acme"]`) || !strings.Contains(out, "of acme?") || strings.Count(out, "its own") != 1 {
			t.Errorf("it says %s", out)
		}
		if out := f.must(t, "network", "log", "box", "--propose"); !strings.Contains(out, "--host-header 'web.example=x-org:acme'") {
			t.Errorf("it proposes %s", out)
		}
		f.must(t, reach...)
		if out := run("box", false, ask); strings.Contains(out, "acme") || strings.Count(out, "its own") != 3 {
			t.Errorf("without them it says %s", out)
		}
		f.must(t, "create", "--name", "made", "--allow-domain", "other.example", "--host-header", "other.example=X-Org:it's acme")
		if out := run("made", false, `curl -sS https://other.example/`); !strings.Contains(out, "of it's acme?") {
			t.Errorf("made with them it says %s", out)
		}
		f.must(t, "rm", "-f", "made")
	})
	t.Run("WhoDoesNotTrustIsTold", func(t *testing.T) {
		run("box", false, another+`curl -sS --cacert another.pem https://web.example/`)
		noted(t, f, "box", "web.example", "trust")
	})
	t.Run("ItIsNowhereInside", func(t *testing.T) {
		backwards := func(s string) string {
			b := []byte(s)
			for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
				b[i], b[j] = b[j], b[i]
			}
			return string(b)
		}
		const other = "an0ther-value-that-is-inside"
		// A program that is in the midst of using it.
		run("box", false, `OTHER=`+other+` nohup python3 -c '
import os, time, urllib.request as u
while True:
    u.urlopen(u.Request("https://web.example/page", headers={"Authorization": "Bearer " + os.environ["KEY"]})).read(); time.sleep(0.05)
' >/dev/null 2>&1 & sleep 1`)
		for _, root := range []bool{false, true} {
			out := run("box", root, fmt.Sprintf("python3 -c '%s' '%s' '%s'", search, backwards(boundValue), backwards(other)))
			if strings.Contains(out, "found the value") || !strings.Contains(out, "searched") || !root && !strings.Contains(out, "found the other in memory") {
				t.Errorf("root %v: %s", root, out)
			}
		}
	})
	t.Run("ThroughTheSandboxesLife", func(t *testing.T) {
		f.must(t, "snapshot", "create", "box", "--name", "first")
		f.must(t, "fork", "box", "--key", "other")
		works("in a fork", "other")
		f.must(t, "stop", "box")
		f.must(t, "start", "box")
		works("started again", "box")
		if n := strings.TrimSpace(run("box", false, "grep -c 'bound secrets, begin' /etc/ssl/certs/ca-certificates.crt")); n != "1" {
			t.Errorf("the block is there %s times", n)
		}
		f.must(t, "secret", "rm", "KEY")
		if out := run("box", false, "for i in $(seq 200); do [ -e /usr/local/share/ca-certificates/sandpit.crt ] || break; sleep 0.05; done; grep -rls 'bound secrets' /etc/ssl/certs; ls /usr/local/share/ca-certificates; env | grep CA_; true"); out != "" {
			t.Errorf("it is trusted still: %s", out)
		}
		f.must(t, "pause", "box")
		f.must(t, set...)
		f.must(t, "resume", "box")
		works("set while it was paused", "box")
		f.must(t, "secret", "rm", "KEY")
		f.must(t, "rollback", "box", "--to", "first")
		if out := run("box", false, clients["no stand"]); strings.Contains(out, "welcome") {
			t.Errorf("without a secret: %s", out)
		}
		f.must(t, set...)
		works("after a rollback", "box")
		if err := f.server.end(9); err != nil {
			t.Fatal(err)
		}
		f.start(t)
		works("after the server was killed", "box")
	})
	t.Run("AHostileRootHurtsItselfOnly", func(t *testing.T) {
		const bundle = "/etc/ssl/certs/ca-certificates.crt"
		for what, script := range map[string]string{
			"a fifo": "mkfifo " + bundle, "a link": "ln -s /proc/self/mem " + bundle, "a directory": "mkdir " + bundle, "huge": "truncate -s 100G " + bundle,
		} {
			run("box", true, "mv "+bundle+" /root/kept; "+script)
			f.must(t, "stop", "box")
			f.must(t, "start", "box")
			if out := f.must(t, "activity", "box"); !strings.Contains(out, "trust the authority") {
				t.Errorf("%s: not on the record", what)
			}
			run("box", true, "rm -rf "+bundle+"; mv /root/kept "+bundle)
		}
		f.must(t, "stop", "box")
		f.must(t, "start", "box")
		works("mended", "box")
	})
	for _, out := range []string{f.must(t, "activity", "box"), f.must(t, "network", "log", "box"), f.must(t, "secret", "ls"), f.server.log()} {
		if strings.Contains(out, boundValue) {
			t.Errorf("told: %s", out)
		}
	}
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/internal/indextest"
)

// The hosts of the tests' own indexes. Only the tests' servers know their address.
const (
	pipHost = "pip.sandpit.test"
	npmHost = "npm.sandpit.test"
)

// indexes are small servers with a package each: pip's behind an authority of its own, npm's without TLS.
type indexes struct {
	address   string // that both listen on
	authority []byte // in PEM
	pip, npm  string // addresses by name
	npmTLS    string // npm's, behind the authority
}

func openIndexes(t *testing.T) *indexes {
	t.Helper()
	x := &indexes{address: ownAddress(t)}
	authority, over := indextest.Authority(t, pipHost, npmHost)
	x.authority = authority
	open := func(host string, h http.Handler, secure bool) string {
		s := httptest.NewUnstartedServer(h)
		l, err := net.Listen("tcp", net.JoinHostPort(x.address, "0"))
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Listener.Close()
		s.Listener, s.TLS = l, over
		scheme := "http"
		if secure {
			scheme = "https"
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return scheme + "://" + net.JoinHostPort(host, port)
	}
	x.pip = open(pipHost, pipIndex(t), true) + "/simple"
	pear := indextest.NPM(t, "sandpit-pear", "module.exports = 'installed by npm'\n")
	x.npm, x.npmTLS = open(npmHost, pear, false), open(npmHost, pear, true)
	return x
}

// ownAddress returns an address of this machine that is not its loopback, which a sandbox has one of its own of.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but its loopback")
	return ""
}

// pipIndex serves the package sandpit-apple as a wheel.
func pipIndex(t *testing.T) http.Handler {
	t.Helper()
	name, wheel := indextest.Wheel(t, "sandpit-apple", "kind = 'installed by pip'\n")
	m := http.NewServeMux()
	m.HandleFunc("GET /simple/sandpit-apple/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><a href="/files/%s">%s</a>`, name, name)
	})
	m.HandleFunc("GET /files/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wheel) })
	return m
}

// serve starts a server that knows the hosts of the indexes and trusts their authority.
func (x *indexes) serve(t *testing.T, more string) *server {
	t.Helper()
	return serveBy(t, func(cmd *exec.Cmd, dir string) {
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		hosts := file("hosts", "127.0.0.1 localhost\n"+x.address+" "+pipHost+" "+npmHost+"\n")
		config := file("config.yaml", "network:\n  allow_private: ["+x.address+"/32]\n  ca_files: ["+file("authority.pem", string(x.authority))+"]\n"+more)
		// Names are the host's to resolve: it has a view of the machine in which there are these.
		cmd.Args = append([]string{"unshare", "--mount", "--propagation", "slave", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts}, cmd.Args...)
		cmd.Args = append(cmd.Args, "--config", config)
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip("the tests' own names need unshare of util-linux")
		}
		cmd.Path = path
	})
}

// TestAPackageIsInstalledInThreeCalls shows that an agent without a network gets a package by three calls and one
// line that a person types.
func TestAPackageIsInstalledInThreeCalls(t *testing.T) {
	x := openIndexes(t)
	s := x.serve(t, "")
	for _, c := range []struct{ tool, host, install, use, says string }{
		{"pip", pipHost, "pip install --index-url " + x.pip + " sandpit-apple", `python3 -c "import sandpit_apple; print(sandpit_apple.kind)"`, "installed by pip"},
		{"npm", npmHost, "npm install --registry " + x.npm + " sandpit-pear", `node -p "require('sandpit-pear')"`, "installed by npm"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			a := openAgent(t, s, "")
			got := a.Call("run_command", args{"command": c.install + " && " + c.use})
			if !strings.Contains(got.Text, "exit 1 ") || !strings.Contains(got.Text, "request_network") {
				t.Fatalf("without a network:\n%s", got.Text)
			}
			// One more try is at once, the next ones are not.
			if n := strings.Count(got.Text, "Retrying"); n > 1 {
				t.Errorf("%s tried again %d times:\n%s", c.tool, n, got.Text)
			}
			got = a.Call("request_network", args{"allow": c.host, "reason": "to install a package"})
			_, line, ok := strings.Cut(got.Text, "the user types: sandpit ")
			line, _, _ = strings.Cut(line, "\n")
			if !ok || got.IsError {
				t.Fatalf("asked for it:\n%s", got.Text)
			}
			if out, err := s.command(strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Fatalf("sandpit %s: %v\n%s", line, err, out)
			}
			got = a.Call("run_command", args{"command": c.install + " && " + c.use})
			if !strings.Contains(got.Text, "exit 0 ") || !strings.Contains(got.Text, c.says) {
				t.Errorf("with it:\n%s", got.Text)
			}
			a.Report("package-by-" + c.tool)
			if a.Calls > 3 {
				t.Errorf("it took %d calls", a.Calls)
			}
		})
	}
	t.Run("EveryToolTrustsTheAuthority", func(t *testing.T) {
		a := openAgent(t, s, "")
		for what, command := range map[string]string{
			"curl":                        "curl -sS --fail " + x.pip + "/sandpit-apple/",
			"Python":                      `python3 -c "import urllib.request; print(urllib.request.urlopen('` + x.pip + `/sandpit-apple/').status)"`,
			"git":                         "git ls-remote " + x.npmTLS + "/none 2>&1 | grep 'not found'", // and not that the server is not trusted
			"Node":                        `node -e "fetch('` + x.npmTLS + `/sandpit-pear').then(r => console.log(r.status))"`,
			"npm":                         "npm view --registry " + x.npmTLS + " sandpit-pear version",
			"Python's ssl":                `python3 -c "import ssl, socket; print(ssl.create_default_context().wrap_socket(socket.create_connection(('` + strings.TrimSuffix(strings.TrimPrefix(x.npmTLS, "https://"), "/") + `'.split(':')[0], int('` + x.npmTLS + `'.rsplit(':', 1)[1]))), server_hostname='` + npmHost + `').version())"`,
			"the system's bundle":         "curl -sS --fail --cacert /etc/ssl/certs/ca-certificates.crt " + x.npmTLS + "/sandpit-pear",
			"apt":                         aptUpdate(x.npmTLS) + ` 2>&1 | grep '404 '`, // and not that the server is not trusted
			"a virtual environment's pip": "python3 -m venv /tmp/v && /tmp/v/bin/pip install --index-url " + x.pip + " sandpit-apple",
		} {
			if got := a.Call("run_command", args{"command": command, "wait_seconds": 55}); !strings.Contains(got.Text, "exit 0 ") {
				t.Errorf("%s:\n%s", what, got.Text)
			}
		}
		// What a user set stays.
		if got := a.Call("run_command", args{"command": "echo $SSL_CERT_FILE $PIP_CERT $GIT_SSL_CAINFO end", "env": args{"SSL_CERT_FILE": "/mine.pem"}}); !strings.Contains(got.Text, "/mine.pem end") {
			t.Errorf("variables:\n%s", got.Text)
		}
	})
}

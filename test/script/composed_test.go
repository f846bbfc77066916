// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/runtime/docker"
)

// composed is the file's services on an Engine, started as docker compose does.
type composed struct {
	*engineHost
	compose
}

// args are those of docker run for a service. What the file may say readCompose knows, and each of it is here.
func (c *composed) args(service string) []string {
	s := c.Services[service]
	args := []string{"run", "-d", "--name", service, "--network", c.Name + "_" + s.Networks[0], "--network-alias", service}
	if s.Privileged {
		args = append(args, c.privileged()...)
	}
	if s.ReadOnly {
		args = append(args, "--read-only")
	}
	for flag, values := range map[string][]string{
		"--publish": s.Ports, "--cap-drop": s.CapDrop, "--cap-add": s.CapAdd, "--security-opt": s.SecurityOpt, "--tmpfs": s.Tmpfs,
	} {
		for _, v := range values {
			args = append(args, flag, v)
		}
	}
	for name, value := range s.Environment {
		args = append(args, "--env", name+"="+value)
	}
	for _, v := range s.Volumes {
		args = append(args, "--volume", c.Name+"_"+v)
	}
	if s.Restart != "" {
		args = append(args, "--restart", s.Restart)
	}
	if h := s.Healthcheck; h != nil {
		var words []string
		for _, w := range h["test"].([]any)[1:] {
			words = append(words, w.(string))
		}
		args = append(args, "--health-cmd", strings.Join(words, " "), "--health-interval", h["interval"].(string), "--health-timeout", h["timeout"].(string))
	}
	return append(args, s.Image)
}

// privileged are the options for all rights. Where the tests have not all themselves, as in some virtual machines, no Engine can give all, and
// these are of those that there are.
func (c *composed) privileged() []string {
	lacks := lackedCapabilities(c.t)
	if len(lacks) == 0 {
		return []string{"--privileged"}
	}
	c.t.Logf("this host gives nobody %v: the Engine of the file gets all other rights of a privileged container", lacks)
	args := []string{"--cap-add", "ALL", "--device-cgroup-rule", "a *:* rwm"}
	for _, name := range lacks {
		args = append(args, "--cap-drop", name)
	}
	for _, o := range []string{"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"} {
		args = append(args, "--security-opt", o)
	}
	return args
}

// lackedCapabilities are those that no process here can have.
func lackedCapabilities(t *testing.T) (names []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "CapBnd:")
	bounding, err := strconv.ParseUint(strings.TrimSpace(rest[:strings.IndexByte(rest, '\n')]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range docker.KnownCapabilities() {
		if bounding&(1<<n) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// composeSays returns what the file's first lines have people run, behind the words that begin it.
func composeSays(t *testing.T, words string) []string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, what, found := strings.Cut(line, words); found && strings.HasPrefix(line, "#") {
			return strings.Fields(what)
		}
	}
	t.Fatalf("the file says nothing with %q", words)
	return nil
}

// up makes what the file names, and starts a service as the file says.
func (c *composed) up(service string) {
	c.t.Helper()
	c.docker(c.args(service)...)
	for _, network := range c.Services[service].Networks[1:] {
		c.docker("network", "connect", "--alias", service, c.Name+"_"+network, service)
	}
}

// await waits until a container is in a state that format prints.
func (c *composed) await(container, format, want string) {
	c.t.Helper()
	for end := time.Now().Add(startBound); ; time.Sleep(100 * time.Millisecond) {
		got := c.docker("inspect", "-f", format, container)
		if got == want {
			return
		}
		if time.Now().After(end) || c.docker("inspect", "-f", "{{.State.Status}}", container) == "exited" {
			log, _ := c.Docker("logs", container).CombinedOutput()
			c.t.Fatalf("%s is %s\n%s", container, got, log)
		}
	}
}

// firewall gives the host's Engine the program by which it sends what containers ask 127.0.0.11 to its own names. Debian makes that of
// links when it installs the package, which nobody did here.
func (c *composed) firewall() {
	c.t.Helper()
	if _, err := exec.LookPath("iptables"); err == nil {
		return
	}
	const place = "/usr/local/sbin" // in every PATH, and of the Engine's own namespace from now on
	theirs := c.theirs()
	modules, err := filepath.Glob(filepath.Join(theirs, "usr/lib/*/xtables"))
	if err == nil && len(modules) == 0 {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = c.Engine().Do(func() error {
			if err := unix.Mount("tmpfs", place, "tmpfs", 0, "mode=755"); err != nil {
				return err
			}
			text := fmt.Sprintf("#!/bin/sh\nXTABLES_LIBDIR=%s exec %s iptables \"$@\"\n", modules[0], filepath.Join(theirs, "usr/sbin/xtables-nft-multi"))
			return os.WriteFile(filepath.Join(place, "iptables"), []byte(text), 0o755)
		})
	}
	if err != nil {
		c.t.Fatalf("give the Engine iptables: %v", err)
	}
}

// theirs is where the Engine's programs are: a tree of their packages, or the host itself where they are installed.
func (c *composed) theirs() string { return filepath.Join(filepath.Dir(c.Docker().Path), "../..") }

// dind has the Engine take an image that stands for docker:dind: there is no registry to have that of. It has the programs of the tests' Engine.
func (c *composed) dind(name string) {
	c.t.Helper()
	script, err := os.ReadFile("testdata/dind/dockerd-entrypoint.sh")
	if err != nil {
		c.t.Fatal(err)
	}
	const openssl = "[ req ]\ndistinguished_name = dn\n[ dn ]\n[ v3_ca ]\nbasicConstraints = critical,CA:true\nkeyUsage = critical,keyCertSign\n"
	theirs := c.theirs()
	files := map[string][]byte{"usr/bin/dockerd-entrypoint.sh": script, "etc/openssl.cnf": []byte(openssl)}
	for _, name := range []string{"iptables", "ip6tables"} { // which Debian makes of links
		files["usr/bin/"+name] = []byte("#!/bin/sh\nexec xtables-nft-multi " + name + ` "$@"` + "\n")
	}
	modules, err := filepath.Glob(filepath.Join(theirs, "usr/lib/*/xtables/*.so"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range modules {
		b, err := os.ReadFile(m)
		if err != nil {
			c.t.Fatal(err)
		}
		files["usr/lib/xtables/"+filepath.Base(m)] = b
	}
	cmd := c.Docker("import", "-c", `ENTRYPOINT ["dockerd-entrypoint.sh"]`, "-c", "ENV XTABLES_LIBDIR=/usr/lib/xtables", "-c", "VOLUME /var/lib/docker", "-", name)
	cmd.Stdin = imagetest.Small(c.t, []string{theirs, imagetest.Python(c.t).Root, "/"}, files,
		"dockerd", "containerd", "containerd-shim-runc-v2", "runc", "docker-init", "docker", "docker-proxy", "xtables-nft-multi", "ip", "ps",
		"sh", "mount", "openssl", "hostname", "mkdir", "rm", "cp", "cat", "ls")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("import an Engine's image: %v\n%s", err, out)
	}
}

// published asks the server at the port that the file publishes on the host.
func (c *composed) published(token, path string) (status int, body string) {
	c.t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(c.Services["server"].Ports[0], "127.0.0.1:"), ":")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return c.Engine().DialTCP("127.0.0.1:" + address)
	}}}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://127.0.0.1:"+address+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// The file's two services come up as it says, the server finds its Engine over TLS, and a first program runs. Both go on after a restart.
func TestTheComposeFileComesUp(t *testing.T) {
	needRoot(t)
	c := &composed{newEngineHost(t), readCompose(t)}
	defer func() {
		for _, name := range []string{"engine", "server"} {
			if t.Failed() {
				log, _ := c.Docker("logs", "--tail", "30", name).CombinedOutput()
				t.Logf("the log of %s:\n%s", name, log)
			}
		}
	}()
	c.docker("tag", "sandpit:test", c.Services["server"].Image)
	c.dind(c.Services["engine"].Image)
	c.firewall()
	// The host's loopback, where the port is.
	l, err := c.Engine().Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	for name := range c.Networks {
		c.docker("network", "create", c.Name+"_"+name)
	}
	for name := range c.Volumes {
		c.docker("volume", "create", c.Name+"_"+name)
	}
	c.up("engine")
	c.await("engine", "{{.State.Health.Status}}", "healthy")
	// There is no registry to pull it of.
	own := c.Docker("exec", "-i", "engine", "docker", "import", "-", c.Services["server"].Environment["SANDBOX_IMAGE"])
	own.Stdin = smallRoot(t, "bash", "sh", "cat", "id", "mkdir", "rm")
	if out, err := own.CombinedOutput(); err != nil {
		t.Fatalf("import an image: %v\n%s", err, out)
	}
	if _, known := c.Services["server"].DependsOn["engine"]; !known {
		t.Error("the server does not wait for its Engine")
	}
	c.up("server")
	const tool = "/usr/bin/sandpit"
	answers := func() {
		t.Helper()
		for end := time.Now().Add(startBound); ; time.Sleep(100 * time.Millisecond) {
			out, err := c.Docker("exec", "server", tool, "ls").CombinedOutput()
			if err == nil {
				return
			}
			if time.Now().After(end) {
				log, _ := c.Docker("logs", "server").CombinedOutput()
				t.Fatalf("it says %s\n%s", out, log)
			}
		}
	}
	answers()
	token := c.docker(append([]string{"exec", "server"}, composeSays(t, " exec server ")...)...)
	c.docker("exec", "server", tool, "create", "--name", "box")
	if got := c.docker("exec", "server", tool, "exec", "box", "-c", "id -u; echo $((6*7)) >n; cat n"); got != "1000\n42" {
		t.Errorf("a command said %q", got)
	}
	if status, body := c.published(strings.TrimSpace(token[strings.LastIndexByte(token, '\n')+1:]), "/v1/sandboxes"); status != http.StatusOK || !strings.Contains(body, `"box"`) {
		t.Errorf("the list by the token: %d %s (%s)", status, body, token)
	}
	// The sandbox is in the Engine beside the server, beside those that the pool has made by now, and not on that of the host.
	if inner := c.docker("exec", "engine", "docker", "ps", "-q", "--filter", "label=dev.sandpit.sandbox"); len(strings.Fields(inner)) == 0 {
		t.Errorf("the Engine beside the server has the sandboxes %q", inner)
	}
	if names := strings.Fields(c.docker("ps", "--format", "{{.Names}}")); len(names) != 2 || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "sandpit-") }) {
		t.Errorf("the host's Engine runs %v", names)
	}
	c.docker("restart", "server")
	answers()
	if got := c.docker("exec", "server", tool, "exec", "box", "-c", "cat n"); got != "42" {
		t.Errorf("after the server's restart a command said %q", got)
	}
	c.docker("restart", "engine")
	c.await("engine", "{{.State.Health.Status}}", "healthy")
	// Until the server has seen that the Engine was gone, the record says that the sandbox runs, and a start is none.
	for end := time.Now().Add(startBound); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.Docker("exec", "server", tool, "start", "box").CombinedOutput()
		if err == nil {
			if out, err = c.Docker("exec", "server", tool, "exec", "box", "-c", "cat n").CombinedOutput(); err == nil {
				if got := strings.TrimSpace(string(out)); got != "42" {
					t.Errorf("after the Engine's restart a command said %q", got)
				}
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("after the Engine's restart its start, or a command, says %s", out)
		}
	}
	c.docker("exec", "server", tool, "rm", "-f", "box")
	c.docker("rm", "-f", "-v", "server", "engine")
}

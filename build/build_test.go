// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"sandpit.dev/build"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/entry"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

// names returns the entries of a layer by their names.
func names(t *testing.T, made *image.Built) map[string]*tar.Header {
	t.Helper()
	var b bytes.Buffer
	if err := made.Layer(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*tar.Header)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(h.Name, "/")] = h
	}
}

func TestABuildDoesItsStepsAndKeepsThem(t *testing.T) {
	h := open(t, t.TempDir())
	write := entry.Step{Title: "files", User: sandbox.UserRoot, Files: []entry.File{
		{Path: "/opt/tool/run.sh", Content: []byte("#!/bin/sh\necho $WORD\n"), Mode: 0o755, User: sandbox.UserRoot},
		{Path: "/home/sandbox/own", Content: []byte("x"), Mode: 0o600, User: sandbox.UserSandbox},
	}}
	as := entry.Step{Title: "as the user", User: sandbox.UserSandbox, Dir: "/tmp", Env: map[string]string{"WORD": "spoken"}, Timeout: time.Minute,
		Commands: [][]string{{"/bin/sh", "-e", "-c", "/opt/tool/run.sh; pwd; id -un; ! touch /usr/forbidden"}}}
	steps := []entry.Step{write, sh("id -u; rm /usr/bin/nano; (setsid sleep 1000 &) ; echo made > /etc/made"), as}
	made := h.must(image.Job{Steps: steps, Packages: []entry.Package{{Tool: entry.Apt, Name: "bash"}, {Tool: entry.Pip, Name: "Requests"}, {Tool: entry.Npm, Name: "npm"}, {Tool: entry.Pip, Name: "no-such"}}})
	has(t, h.log.String(), "step 2 of 3", "0\n", "spoken\n", "/tmp\n", "sandbox\n")
	all := names(t, made)
	for name, mode := range map[string]int64{"opt/tool/run.sh": 0o755, "home/sandbox/own": 0o600, "etc/made": 0o644, "usr/bin/.wh.nano": 0o600} {
		if f := all[name]; f == nil || f.Mode != mode {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := all["home/sandbox/own"]; f != nil && (f.Uid != 1000 || f.Gid != 1000) {
		t.Errorf("own belongs to %d:%d", f.Uid, f.Gid)
	}
	for _, name := range []string{"bash", "Requests", "npm"} {
		if made.Packages[name] == "" {
			t.Errorf("no version of %s in %v", name, made.Packages)
		}
	}
	if len(made.Packages) != 3 || len(made.Resolved) != 3 {
		t.Errorf("packages %v, resolved %v", made.Packages, made.Resolved)
	}
	made.Close()
	h.clean()

	// What was done is not done again, and what is new begins behind it.
	again := h.must(image.Job{Steps: append(steps[:2:2], sh("cat /etc/made; ! pgrep sleep"))})
	has(t, h.log.String(), "2 of 3 steps are kept", "step 3 of 3", "made\n")
	if strings.Contains(h.log.String(), "step 2 of 3") {
		t.Errorf("a kept step was done again:\n%s", h.log.String())
	}
	if names(t, again)["etc/made"] == nil {
		t.Error("what a kept step made is not in the layer")
	}
	again.Close()
	if n := h.steps(); n != 4 {
		t.Errorf("%d steps are kept, want 4", n)
	}
	h.must(image.Job{Steps: steps[:1], Anew: true}).Close()
	if strings.Contains(h.log.String(), "kept") || !strings.Contains(h.log.String(), "step 1 of 1") {
		t.Errorf("a step was taken over:\n%s", h.log.String())
	}
	h.clean()
}

func TestAStepThatFailsLeavesNothing(t *testing.T) {
	h := open(t, t.TempDir(), func(o *engine.Options, _ *build.Options) {
		o.Defaults.Most.DiskMB, o.Defaults.Limits.DiskMB = 64, 64
	})
	for title, c := range map[string]struct {
		step entry.Step
		code fault.Code
		says string
	}{
		"exit code":   {sh("echo before; exit 3"), fault.Unavailable, "exit code 3"},
		"no program":  {entry.Step{Title: "nothing", Commands: [][]string{{"/no/such/program"}}, User: sandbox.UserRoot}, fault.Unavailable, "exit code 127"},
		"full disk":   {sh("head -c 200000000 /dev/urandom > /opt/large"), fault.Exhausted, "is full"},
		"endless":     {entry.Step{Title: "for ever", Commands: [][]string{{"sleep", "1000"}}, User: sandbox.UserRoot, Timeout: 200 * time.Millisecond}, fault.Timeout, "longer than 200ms"},
		"a directory": {entry.Step{Title: "files", Files: []entry.File{{Path: "/etc", Content: []byte("x"), Mode: 0o644, User: sandbox.UserRoot}}}, "", "/etc"},
	} {
		made, err := h.build(image.Job{Steps: []entry.Step{c.step}})
		if made != nil || err == nil {
			t.Fatalf("%s: it was built", title)
		}
		if c.code != "" && fault.Of(err) != c.code || !strings.Contains(fault.As(err).Message, c.says) {
			t.Errorf("%s: %v, want %s that says %q", title, err, c.code, c.says)
		}
		h.clean()
	}
	if n := h.steps(); n != 0 {
		t.Errorf("%d steps are kept", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := h.service.Build(ctx, image.Job{Name: "test", Base: h.base, Steps: []entry.Step{sh("echo begun; sleep 1000")}, Report: func(string, string, float64) {},
		Log: writer(func(p []byte) { cancelOn(p, "begun\n", cancel) })})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	h.clean()
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func cancelOn(p []byte, word string, cancel func()) {
	if bytes.Equal(p, []byte(word)) {
		cancel()
	}
}

func TestAServerThatForbidsRootBuildsNothing(t *testing.T) {
	h := open(t, t.TempDir(), func(o *engine.Options, _ *build.Options) { o.Defaults.ForbidRoot = true })
	if _, err := h.build(image.Job{Steps: []entry.Step{sh("true")}}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v", err)
	}
	h.clean()
}

func TestAKilledServerLeavesNoSandbox(t *testing.T) {
	for _, point := range []string{"create.done", "build.step", "snapshot.done"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			h := open(t, dir)
			h.stop()
			killAt(t, h, point)
			h = open(t, dir)
			made := h.must(image.Job{Steps: crashSteps()})
			if all := names(t, made); all["opt/one"] == nil || all["opt/two"] == nil {
				t.Errorf("%v", all)
			}
			if kept := strings.Contains(h.log.String(), "kept from an earlier build"); kept != (point == "build.step") {
				t.Errorf("the log:\n%s", h.log.String())
			}
			made.Close()
			h.clean()
		})
	}
}

// resolver is that of a network with three machines, of which two are at private addresses.
type resolver struct{ egress.Resolver }

func (resolver) LookupNetIP(_ context.Context, network, name string) ([]netip.Addr, error) {
	if network != "ip4" {
		return nil, &net.DNSError{IsNotFound: true, Name: name}
	}
	switch strings.TrimSuffix(name, ".") {
	case "mirror.example":
		return []netip.Addr{netip.MustParseAddr("10.77.0.5")}, nil
	case "other.example":
		return []netip.Addr{netip.MustParseAddr("10.77.0.6")}, nil
	case "index.example":
		return []netip.Addr{netip.MustParseAddr("8.8.4.4")}, nil // nobody connects there, see Dial
	}
	return nil, &net.DNSError{IsNotFound: true, Name: name}
}

// wheel is a package of Python with one module.
func wheel(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	made := filepath.Join(dir, "w.whl")
	files := map[string]string{
		"hostmirror.py":                        "answer = 42\n",
		"hostmirror-1.5.dist-info/METADATA":    "Metadata-Version: 2.1\nName: hostmirror\nVersion: 1.5\n",
		"hostmirror-1.5.dist-info/WHEEL":       "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"hostmirror-1.5.dist-info/RECORD":      "",
		"hostmirror-1.5.dist-info/top_level.x": "hostmirror\n",
	}
	zipFiles(t, made, files)
	b, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStepsReachTheHostsMirrorAndNothingElse(t *testing.T) {
	packed := wheel(t)
	var mu sync.Mutex
	var asked []string
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		mu.Lock()
		asked = append(asked, r.Host+" "+user+":"+pass)
		mu.Unlock()
		switch r.URL.Path {
		case "/simple/hostmirror/":
			_, _ = io.WriteString(w, `<a href="/files/hostmirror-1.5-py3-none-any.whl">hostmirror-1.5-py3-none-any.whl</a>`)
		case "/files/hostmirror-1.5-py3-none-any.whl":
			_, _ = w.Write(packed)
		default:
			http.NotFound(w, r)
		}
	}))
	defer index.Close()
	host := preset.Machine{Files: fstest.MapFS{"etc/pip.conf": {Data: []byte("[global]\nindex-url = http://agent:a-password-of-it@mirror.example/simple\ntrusted-host = mirror.example\n")}}}
	h := open(t, t.TempDir(), func(o *engine.Options, b *build.Options) {
		var err error
		if o.Network.Presets, err = preset.New(preset.Options{Host: host}); err != nil {
			t.Fatal(err)
		}
		o.Network.Resolver = resolver{}
		o.Network.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "10.77.0.5:80" {
				t.Errorf("a connection to %s was tried", address)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", index.Listener.Addr().String())
		}
		b.Host = func() (build.Host, error) { return build.Host{Variables: host.Variables()}, nil }
	})
	e, err := entry.Parse("test.yaml", []byte(`{name: t, base: python, pip: [hostmirror], check: ["python3 -c 'import hostmirror; print(hostmirror.answer)'",
		"if curl -fsS --max-time 5 http://other.example/ || curl -fsS --max-time 5 http://10.77.0.5/ || curl -fsS --max-time 5 http://10.77.0.6/; then exit 1; fi; env"]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	made := h.must(image.Job{Steps: e.Steps, Presets: e.Presets, Packages: e.Packages})
	has(t, h.log.String(), "42\n")
	if strings.Contains(h.log.String(), "a-password-of-it") {
		t.Errorf("the log has the password of the mirror:\n%s", h.log.String())
	}
	if made.Packages["hostmirror"] != "1.5" {
		t.Errorf("%v", made.Packages)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) == 0 {
		t.Error("nobody asked the mirror")
	}
	for _, a := range asked {
		if a != "mirror.example agent:a-password-of-it" {
			t.Errorf("asked as %q", a)
		}
	}
	made.Close()
	// A sandbox of anybody else's does not reach the same name at the same address.
	who := looker
	who.Project = "default"
	if _, _, err := h.engine.Create(t.Context(), who, engine.CreateRequest{Key: "mine", Network: &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: []string{"python"}}}); err != nil {
		t.Fatal(err)
	}
	res, err := h.engine.Exec(t.Context(), who, "mine", engine.ExecRequest{Shell: "curl -fsS --max-time 5 http://mirror.example/simple/hostmirror/"}, nil)
	if err != nil || res.ExitCode == 0 {
		t.Errorf("a user's sandbox reached the host's private mirror: %v %s", err, res.Stdout)
	}
	if err := h.engine.Delete(t.Context(), who, "mine"); err != nil {
		t.Error(err)
	}
}

// images are those of a server whose default image is another one than the base of builds.
type images struct {
	base
	other image.Image
}

func (i images) Resolve(name string) (image.Entry, error) {
	img, err := i.Find(context.Background(), name)
	return image.Entry{Name: img.Name}, err
}

func (i images) Find(_ context.Context, name string) (image.Image, error) {
	if name == "" {
		return i.other, nil
	}
	return i.img, nil
}

// A base without pip does not say where that fetches from, which a step may install.
func TestStepsReachWhatTheDefaultImagesToolsFetchFrom(t *testing.T) {
	skiptest.WithoutRoot(t, "builds are made in sandboxes of the native runtime")
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "an index\n") }))
	defer served.Close()
	root := t.TempDir()
	pip := filepath.Join(root, "usr/lib/python3/dist-packages/pip/_internal/models")
	if err := errors.Join(os.MkdirAll(pip, 0o755), os.WriteFile(filepath.Join(pip, "index.py"), []byte(`PyPI = PackageIndex("http://index.example/", file_storage_domain="other.example")`), 0o644)); err != nil {
		t.Fatal(err)
	}
	small := imagetest.Base(t)
	h := open(t, t.TempDir(), func(o *engine.Options, _ *build.Options) {
		var err error
		if o.Network.Presets, err = preset.New(preset.Options{}); err != nil { // this host has no pip, as far as it is told
			t.Fatal(err)
		}
		o.Images = images{base{small}, image.Image{Name: "python", Root: root}}
		o.Network.Resolver = resolver{}
		o.Network.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "8.8.4.4:80" {
				t.Errorf("a connection to %s was tried", address)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", served.Listener.Addr().String())
		}
	})
	h.base = small
	job := image.Job{Presets: []string{"python"}, Steps: []entry.Step{
		sh("curl -fsS --max-time 5 http://index.example/ 2>/dev/null || echo nothing; curl -fsS --max-time 5 http://other.example/ 2>/dev/null || echo nothing at a private address"),
	}}
	h.must(job).Close()
	has(t, h.log.String(), "an index\nnothing at a private address\n")
	job.Presets = []string{"node"} // nothing here has npm
	if _, err := h.build(job); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `"node" stands for no host here`) {
		t.Errorf("%v", err)
	}
	h.clean()
}

// The whole way, into the directory of images.
func TestAHostileBuildMakesAnImageOfWhatIsKept(t *testing.T) {
	dir := imagetest.Dir(t)
	h := open(t, t.TempDir())
	const name = "build-test-hostile"
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(dir, name)) })
	_ = os.RemoveAll(filepath.Join(dir, name))
	e, err := entry.Parse("test.yaml", []byte(`
name: `+name+`
base: python
env: {MADE: "yes"}
run:
  - |
    setsid sleep 1000 & sh -c 'trap "" TERM; sleep 1000' &
    cp /bin/true /opt/suid; chown 1000 /opt/suid; chmod 6755 /opt/suid
    mknod /opt/disk b 8 0 2>/dev/null || true; mkfifo /opt/fifo
    ln -s /etc/shadow /opt/link; ln /opt/suid /opt/hard
    rm -rf /usr/share/zoneinfo; ln -s / /usr/share/zoneinfo
    touch /tmp/t /var/tmp/v /workspace/w /artifacts/a; mkdir -p /root/.cache/c /run/r; echo x > /root/.cache/c/f; ln /root/.cache/c/f /opt/other-name
    echo poison > /etc/hostname; echo 11112222333344445555666677778888 > /etc/machine-id
    setfattr -n user.note -v yes /opt/suid 2>/dev/null || python3 -c 'import os; os.setxattr("/opt/suid", "user.note", b"yes")'
    head -c 20000000 /dev/zero | tr '\0' y
  - mv /etc /etc-away; ln -s /opt /etc
  - rm /etc; mv /etc-away /etc; rm -rf /opt/gone; mkdir /opt/gone; printf 'a\0b'
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	images, err := image.Open(image.Options{Dir: dir, Entries: []entry.Entry{e}})
	if err != nil {
		t.Fatal(err)
	}
	defer images.Close()
	if _, err := images.Ensure(t.Context(), name); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without a builder: %v", err)
	}
	images.Use(h.service)
	img, err := images.Ensure(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	h.clean()
	check(t, h.base, img)
	again, err := image.Open(image.Options{Dir: dir, Entries: []entry.Entry{e}})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if found, err := again.Find(t.Context(), name); err != nil || found.Digest != img.Digest {
		t.Errorf("found %v, %v", found.Digest, err)
	}
}

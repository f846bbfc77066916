// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

// fake is a server on a unix socket that is no Engine of any kind, or a bad one.
func fake(t *testing.T, h http.HandlerFunc) Host {
	t.Helper()
	l, path := listen(t)
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return unixHost(path)
}

func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine-") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

// engine has the handler answer what comes after a ping.
func engine(version string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_ping" {
			w.Header().Set("Api-Version", version)
			return
		}
		h(w, r)
	}
}

func wantFault(t *testing.T, err error, code fault.Code, words string) {
	t.Helper()
	f := fault.As(err)
	if err == nil || f.Code != code || !strings.Contains(f.Message, words) {
		t.Errorf("got %v (%s), want %s with %q", err, fault.Of(err), code, words)
	}
}

func TestWhatListensIsNoGoodEngine(t *testing.T) {
	for name, tt := range map[string]struct {
		h     http.HandlerFunc
		code  fault.Code
		words string
	}{
		"Another":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, fault.Unavailable, "is no Engine"},
		"Nonsense": {engine("many", nil), fault.Unavailable, "is no Engine"},
		"Negative": {engine("1.-41", nil), fault.Unavailable, "is no Engine"},
		"TooOld":   {engine("1.40", nil), fault.Unsupported, "version 1.40"},
		"Failing":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "insides", 500) }, fault.Unavailable, "failed"},
		"Forbidden": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"plugin says no"}`, http.StatusForbidden)
		}, fault.Denied, "plugin says no"},
		"Elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.org/", http.StatusFound)
		}, fault.Unavailable, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connect(t, fake(t, tt.h))
			wantFault(t, err, tt.code, tt.words)
			if fault.As(err).Remedy == "" && tt.code != fault.Denied {
				t.Error("it says nothing of what to do")
			}
		})
	}
	for name, words := range map[string]string{"SSH": "SSH-2.0-OpenSSH_9.2\r\n", "Nothing": "", "HalfAHead": "HTTP/1.1 200 OK\r\nApi-Ver", "Binary": "\x00\x01\x02\xff\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			l, path := listen(t)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, words)
					_ = c.Close()
				}
			}()
			_, err := connect(t, unixHost(path))
			if got := fault.Of(err); got != fault.Unavailable {
				t.Errorf("got %v (%s)", err, got)
			}
		})
	}
	t.Run("AnEndlessHead", func(t *testing.T) {
		l, path := listen(t)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for n := 0; err == nil; n++ {
				_, err = fmt.Fprintf(c, "X-%d: %s\r\n", n, strings.Repeat("x", 1000))
			}
		}()
		_, err := connect(t, unixHost(path))
		wantFault(t, err, fault.Unavailable, "")
	})
}

// Versions are those of both sides, whatever the Engine's is.
func TestTheVersionIsOneThatBothSpeak(t *testing.T) {
	for theirs, want := range map[string]Version{"1.41": {1, 41}, "1.45": {1, 45}, "1.99": Newest, "2.0": Newest} {
		var asked string
		c, err := connect(t, fake(t, engine(theirs, func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path
			fmt.Fprint(w, "{}")
		})))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Info(t.Context()); err != nil || asked != "/v"+want.String()+"/info" {
			t.Errorf("an Engine of %s was asked %q (%v), want version %v", theirs, asked, err, want)
		}
		c.Close()
	}
}

// connect looks for an Engine at these hosts.
func connect(t *testing.T, hosts ...Host) (*Client, error) {
	c := newClient(hosts)
	err := c.Connect(t.Context())
	if err != nil {
		c.Close()
	}
	return c, err
}

func opened(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	c, err := connect(t, fake(t, engine("1.41", h)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A call whose answer does not come, or does not end, has an end all the same, and it is not
// the caller's.
func TestAnEngineThatHangs(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	c := opened(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/half") {
			fmt.Fprint(w, `{"ID":`)
			w.(http.Flusher).Flush()
		}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	for _, path := range []string{"/whole", "/half"} {
		err := c.call(t.Context(), request{method: http.MethodGet, path: path, within: 50 * time.Millisecond}, &Info{})
		wantFault(t, err, fault.Unavailable, "did not answer GET "+path+" within 50ms")
		if _, err := c.stream(t.Context(), request{method: http.MethodGet, path: "/whole", within: 50 * time.Millisecond}, 0, time.Minute); err != nil {
			wantFault(t, err, fault.Unavailable, "did not answer GET /whole within 50ms")
		} else {
			t.Error("a stream began without an answer")
		}
		s, err := c.stream(t.Context(), request{method: http.MethodGet, path: path, within: time.Minute}, 50*time.Millisecond, 0)
		if err == nil {
			var p progress
			err = s.next(&p)
			s.close()
		}
		if err == nil || !strings.Contains(err.Error(), "did not answer GET "+path+" within 50ms") {
			t.Errorf("%s: work without progress: got %v", path, err)
		}
	}
	// The caller's own end is told as that.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Info(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's", err)
	}
}

func TestAnswersThatAreNotThoseOfAnEngine(t *testing.T) {
	endless := func(w http.ResponseWriter, text string) {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
	c := opened(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/endless"):
			endless(w, strings.Repeat(" ", 1<<16))
		case strings.Contains(r.URL.Path, "/words"):
			w.WriteHeader(http.StatusNotFound)
			endless(w, strings.Repeat("x", 1<<16))
		case strings.Contains(r.URL.Path, "/control"):
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"message":"a\u001b[31m\nb \ud800 `+strings.Repeat("y", 1000)+`"}`)
		case strings.Contains(r.URL.Path, "/full"):
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"message":"write /var/lib/docker/x: no space left on device"}`)
		case strings.HasSuffix(r.URL.Path, "/load"):
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, `{"stream":"so far"}`+"\r\n"+`{"errorDetail":{"message":"write /var/lib/docker/x: no space left on device"},"error":"short"}`)
		case strings.HasSuffix(r.URL.Path, "/events"):
			endless(w, strings.Repeat("e", 1<<16))
		case strings.HasSuffix(r.URL.Path, "/create"):
			fmt.Fprint(w, `{"Id":""}`)
		default:
			fmt.Fprint(w, `[1, "no object"]`)
		}
	})
	ctx := t.Context()
	_, err := c.InspectContainer(ctx, "endless")
	wantFault(t, err, fault.Unavailable, "more than")
	_, err = c.InspectContainer(ctx, "words")
	wantFault(t, err, fault.NotFound, "Not Found")
	_, err = c.InspectContainer(ctx, "control")
	wantFault(t, err, fault.Conflict, "a [31m b")
	if m := fault.As(err).Message; len(m) > 500 || strings.ContainsAny(m, "\x1b\n") {
		t.Errorf("its words are %q", m)
	}
	_, err = c.InspectContainer(ctx, "full")
	wantFault(t, err, fault.Full, "disk of the Engine")
	if f := fault.As(err); f.Disk != fault.StoreDisk || strings.Contains(f.Message, "/var/lib") {
		t.Errorf("it is told as %+v", f)
	}
	wantFault(t, c.LoadImage(ctx, strings.NewReader("an image")), fault.Full, "disk of the Engine")
	_, err = c.Info(ctx)
	wantFault(t, err, fault.Unavailable, "no JSON of its API")
	_, err = c.CreateContainer(ctx, Container{})
	wantFault(t, err, fault.Unavailable, "without an id")
	e, err := c.Events(ctx, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Next()
	wantFault(t, err, fault.Unavailable, "line of more than")
}

func TestNoEngine(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]Host{"Missing": unixHost(dir + "/none"), "AFile": unixHost(plain)} {
		_, err := connect(t, h)
		wantFault(t, err, fault.Unavailable, "no Engine listens at unix://")
		if fault.As(err).Remedy == "" {
			t.Errorf("%s: nothing is said of what to do", name)
		}
	}
	_, err := Find(t.Context(), Environment{Host: "tcp://127.0.0.1:1"})
	wantFault(t, err, fault.Unavailable, "no Engine listens at tcp://127.0.0.1:1")
}

// A socket that the server's user may not connect to is told as such, by root and by others.
func TestNoRightOnTheSocket(t *testing.T) {
	skiptest.WithoutRoot(t, "it becomes another user")
	h := fake(t, engine("1.41", nil))
	if err := os.Chmod(h.address, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(h.address), 0o755); err != nil {
		t.Fatal(err)
	}
	dial := asNobody(t)
	c := newClient([]Host{h})
	c.found.Store(&found{host: h})
	c.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, h.address) }
	_, err := c.negotiate(t.Context())
	wantFault(t, err, fault.Denied, "may not connect")
}

// asNobody returns what dials with the rights of another user. They are those of a thread that ends.
func asNobody(t *testing.T) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, path string) (net.Conn, error) {
		type result struct {
			net.Conn
			error
		}
		done := make(chan result)
		go func() {
			runtime.LockOSThread() // it ends with the goroutine
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
				done <- result{nil, e}
				return
			}
			c, err := new(net.Dialer).DialContext(ctx, "unix", path)
			done <- result{c, err}
		}()
		r := <-done
		return r.Conn, r.error
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"unix:///a/b": "unix /a/b", "tcp://h": "tcp h:2375", "tcp://h:1": "tcp h:1", "tcp://[::1]:2": "tcp [::1]:2", "http://h:3/": "tcp h:3",
	} {
		h, err := Environment{Host: text}.parse()
		if err != nil || h.network+" "+h.address != want {
			t.Errorf("%s is %+v, %v; want %s", text, h, err, want)
		}
	}
	for _, text := range []string{
		"", "/run/docker.sock", "unix://", "unix://docker.sock", "ssh://h", "npipe:////./pipe/x", "fd://", "tcp://", "tcp://:1", "tcp://h:0", "tcp://h:65536",
		"tcp://h:x", "tcp://u:p@h:1", "tcp://h:1/path", "tcp://h:1?q", "tcp://%zz:1",
	} {
		_, err := Environment{Host: text}.parse()
		wantFault(t, err, fault.Invalid, "DOCKER_HOST")
		if strings.Contains(text, "u:p") && strings.Contains(fmt.Sprint(err), "u:p@h:1\"") && fault.As(err).Remedy == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The usual sockets are asked in mcp-sandboxd's order: of the user Podman's, then Docker's; of the
// machine Podman's, then Docker's two.
func TestTheUsualSockets(t *testing.T) {
	var got []string
	for _, h := range (Environment{RuntimeDir: "/run/user/7", Home: "/home/u", UID: 7}).usual() {
		got = append(got, h.address)
	}
	want := "/run/user/7/podman/podman.sock /run/user/7/docker.sock /home/u/.docker/run/docker.sock /run/podman/podman.sock /var/run/docker.sock /run/docker.sock"
	if strings.Join(got, " ") != want {
		t.Errorf("asked are %s, want %s", strings.Join(got, " "), want)
	}
	if h := (Environment{UID: 8}).usual()[0]; h.address != "/run/user/8/podman/podman.sock" {
		t.Errorf("without variables the first is %v", h)
	}

	over := make(chan struct{})
	defer close(over)
	hanging := fake(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	good := fake(t, engine("1.41", nil))
	missing := unixHost(t.TempDir() + "/none")
	c, err := connect(t, missing, hanging, good)
	if err != nil || c.Host() != good {
		t.Fatalf("found is %v, %v; want %v", c, err, good)
	}
	c.Close()
	_, err = connect(t, missing, hanging)
	wantFault(t, err, fault.Unavailable, missing.address+" (missing)")
	wantFault(t, err, fault.Unavailable, hanging.address+" (no answer within 800ms)")
}

// An Engine that comes later is found by the next call, and from then on no other is asked, also where
// one of an earlier place comes.
func TestAnEngineThatComesLater(t *testing.T) {
	dir := t.TempDir()
	first, second := unixHost(dir+"/first"), unixHost(dir+"/second")
	c := newClient([]Host{first, second})
	t.Cleanup(c.Close)
	_, err := c.Info(t.Context())
	wantFault(t, err, fault.Unavailable, first.address+" (missing)")
	if name := c.Host().String(); name != "one of the usual sockets" || !c.Host().Local() {
		t.Errorf("it is said to be at %s", name)
	}
	come := func(h Host, id string) {
		l, err := net.Listen("unix", h.address)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: engine("1.41", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"ID":%q}`, id) })}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
	}
	come(second, "second")
	for range 2 {
		if info, err := c.Info(t.Context()); err != nil || info.ID != "second" || c.Host() != second {
			t.Errorf("it says %+v, %v, and is at %v", info, err, c.Host())
		}
		if _, err := net.Dial("unix", first.address); err != nil {
			come(first, "first")
		}
	}
}

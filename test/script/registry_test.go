// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/http/cgi"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"sandpit.dev/internal/indextest"
)

// registries serve what the tools of an image ask for, each by a name of its own, all
// on one address: as behind a content network, the name alone tells them apart.
type registries struct {
	authority []byte // PEM; what the servers' names are vouched for by
	drips     chan *drip

	mu    sync.Mutex
	asked map[string]int // requests, by host
}

// drip is an answer that goes on until its end is told, or its connection is cut.
type drip struct {
	host string
	more chan struct{}   // each item sends a line
	cut  context.Context // done when the connection is
}

// hosts are the names of the registries.
var hosts = []string{"apt.example", "files.example", "git.example", "npm.example", "pypi.example", "web.example"}

// openRegistries serves them until the test ends. The repository needs the host's git.
func openRegistries(t *testing.T, w *world) *registries {
	t.Helper()
	r := &registries{drips: make(chan *drip, 8), asked: make(map[string]int)}
	authority, certificate := certify(t)
	r.authority = authority
	file, gadget := indextest.Wheel(t, "gadget", "print('a gadget')\n")
	sites := map[string]http.Handler{
		"apt.example": debian(t), "files.example": text("application/octet-stream", string(gadget)), "git.example": repository(t),
		"npm.example":  indextest.NPM(t, "gizmo", "console.log('a gizmo')\n"),
		"pypi.example": text("text/html", fmt.Sprintf(`<a href="https://files.example/%s">%[1]s</a>`, file)),
		"web.example":  http.HandlerFunc(r.web),
	}
	site := http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		host, _, _ := strings.Cut(req.Host, ":")
		r.mu.Lock()
		r.asked[host]++
		r.mu.Unlock()
		if req.URL.Path == "/drip" {
			r.drip(rw, req, host)
			return
		}
		if h := sites[host]; h != nil {
			h.ServeHTTP(rw, req)
			return
		}
		http.Error(rw, "the wrong door", http.StatusMisdirectedRequest)
	})
	w.serve(t, site, certificate)
	return r
}

// serve answers by HTTP and HTTPS where the registries are, until the test ends.
func (w *world) serve(t *testing.T, site http.Handler, certificate *tls.Config) {
	t.Helper()
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	for port, config := range map[uint16]*tls.Config{80: nil, 443: certificate} {
		server := &http.Server{Handler: site, ErrorLog: log.New(quiet{}, "", 0), TLSConfig: config}
		l := w.listen(t, shelf, port)
		done.Go(func() {
			if config == nil {
				_ = server.Serve(l)
			} else {
				_ = server.ServeTLS(l, "", "")
			}
		})
		t.Cleanup(func() { _ = server.Close() })
	}
}

// count tells how often a host was asked for anything.
func (r *registries) count(host string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[host]
}

// quiet hears of handshakes that failed, which are what is tested.
type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

// certify returns an authority, and what a server needs to answer as each of the registries.
func certify(t *testing.T) (authority []byte, server *tls.Config) {
	t.Helper()
	return indextest.Authority(t, append([]string{"*.example"}, hosts...)...) // some clients take no star so near the root
}

// web is a site with a page, and one that sends visitors on.
func (r *registries) web(rw http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/go" {
		http.Redirect(rw, req, req.URL.Query().Get("to"), http.StatusFound)
		return
	}
	fmt.Fprintln(rw, "the page of", req.URL.Path)
}

func (r *registries) drip(rw http.ResponseWriter, req *http.Request, host string) {
	d := &drip{host, make(chan struct{}), req.Context()}
	line := func() {
		_, _ = fmt.Fprintln(rw, "a drop from", host)
		_ = http.NewResponseController(rw).Flush()
	}
	line()
	r.drips <- d
	for {
		select {
		case <-d.more:
			line()
		case <-d.cut.Done():
			return
		}
	}
}

func text(kind, body string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		_, _ = rw.Write([]byte(body))
	})
}

// debian serves a repository with one package, of one directory and without a signature.
func debian(t *testing.T) http.Handler {
	t.Helper()
	control := "Package: widget\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a widget\n"
	var deb bytes.Buffer
	deb.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		body []byte
	}{
		{"debian-binary", []byte("2.0\n")},
		{"control.tar.gz", indextest.Tarball(t, [][2]string{{"./control", control}})},
		{"data.tar.gz", indextest.Tarball(t, [][2]string{{"./opt/widget", "a widget\n"}})},
	} {
		fmt.Fprintf(&deb, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.body))
		deb.Write(m.body)
		if len(m.body)%2 == 1 {
			deb.WriteByte('\n')
		}
	}
	packages := fmt.Sprintf("%sFilename: ./widget_1.0_all.deb\nSize: %d\nSHA256: %x\n", control, deb.Len(), sha256.Sum256(deb.Bytes()))
	release := fmt.Sprintf("Date: %s\nSHA256:\n %x %d Packages\n", time.Now().UTC().Format(time.RFC1123), sha256.Sum256([]byte(packages)), len(packages))
	mux := http.NewServeMux()
	mux.Handle("GET /Release", text("text/plain", release))
	mux.Handle("GET /Packages", text("text/plain", packages))
	mux.Handle("GET /widget_1.0_all.deb", text("application/octet-stream", deb.String()))
	return mux
}

// repository serves one of git, to read from and to write to; nil: this host has no git.
func repository(t *testing.T) http.Handler {
	t.Helper()
	return repositoryOf(t, fstest.MapFS{"README": {Data: []byte("a repository\n"), Mode: 0o644}})
}

// repositoryOf is repository with these files.
func repositoryOf(t *testing.T, files fs.FS) http.Handler {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		return nil
	}
	dir := t.TempDir()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main", "work")
	if err := os.CopyFS(filepath.Join(dir, "work"), files); err != nil {
		t.Fatal(err)
	}
	git("-C", "work", "add", ".")
	git("-C", "work", "commit", "-q", "-m", "one")
	git("clone", "-q", "--bare", "work", "repo.git")
	git("-C", "repo.git", "config", "http.receivepack", "true")
	return &cgi.Handler{
		Path: filepath.Join(git("--exec-path"), "git-http-backend"), Root: "/",
		Env: append(env, "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1"), Stderr: quiet{},
	}
}

// doors are ports where nobody may come, with a count of who came.
type doors struct {
	mu   sync.Mutex
	came []string
}

// watchDoors opens them until the test ends.
func watchDoors(t *testing.T, w *world, at ...netip.AddrPort) *doors {
	t.Helper()
	d := &doors{}
	came := func(format string, args ...any) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.came = append(d.came, fmt.Sprintf(format, args...))
	}
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	for _, door := range at {
		l, c := w.listen(t, door.Addr(), door.Port()), w.listenPacket(t, door.Addr(), door.Port())
		done.Go(func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				came("tcp %s", door)
				_ = nc.Close()
			}
		})
		done.Go(func() {
			b := make([]byte, 2048)
			for {
				n, _, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				came("udp %s: %q", door, b[:n])
			}
		})
	}
	return d
}

// visitors are those who came.
func (d *doors) visitors() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.came...)
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"math/big"
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
	sites := map[string]http.Handler{
		"apt.example": debian(t), "files.example": wheels(t), "git.example": repository(t), "npm.example": npm(t),
		"pypi.example": text("text/html", `<a href="https://files.example/gadget-1.0-py3-none-any.whl">gadget-1.0-py3-none-any.whl</a>`),
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
	w.serve(t, site, r.certify(t))
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

// certify makes the authority, and a certificate of it for every name there is.
func (r *registries) certify(t *testing.T) *tls.Config {
	t.Helper()
	sign := func(c, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
		b, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	ca, caKey := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the test's authority"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, newKey()
	leaf, leafKey := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "the test's hosts"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"*.example"},
	}, newKey()
	leaf.DNSNames = append(leaf.DNSNames, hosts...) // some clients take no star so near the root
	authority := sign(ca, ca, caKey, caKey)
	r.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})
	return &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{sign(leaf, ca, leafKey, caKey), authority}, PrivateKey: leafKey,
	}}}
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

// wheels serves a package for Python, whose index is on another host.
func wheels(t *testing.T) http.Handler {
	t.Helper()
	return text("application/octet-stream", string(wheel(t, "gadget", "print('a gadget')\n")))
}

// wheel makes a package for Python, of one module, and with it what it requires.
func wheel(t *testing.T, name, module string, requires ...string) []byte {
	t.Helper()
	info := name + "-1.0.dist-info/"
	about := "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"
	for _, other := range requires {
		about += "Requires-Dist: " + other + "\n"
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{name + ".py", module},
		{info + "METADATA", about},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", fmt.Sprintf("%s.py,,\n%[2]sMETADATA,,\n%[2]sWHEEL,,\n%[2]sRECORD,,\n", name, info)},
	} {
		e, err := z.Create(f[0])
		if err == nil {
			_, err = e.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// npm serves a package for Node.
func npm(t *testing.T) http.Handler {
	t.Helper()
	ball := tarball(t, [][2]string{
		{"package/package.json", `{"name":"gizmo","version":"1.0.0","main":"index.js"}`},
		{"package/index.js", "console.log('a gizmo')\n"},
	})
	sum := sha512.Sum512(ball)
	about, err := json.Marshal(map[string]any{
		"name": "gizmo", "dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": map[string]any{
			"name": "gizmo", "version": "1.0.0", "main": "index.js",
			"dist": map[string]string{
				"tarball":   "https://npm.example/gizmo/-/gizmo-1.0.0.tgz",
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /gizmo", text("application/json", string(about)))
	mux.Handle("GET /gizmo/-/gizmo-1.0.0.tgz", text("application/octet-stream", string(ball)))
	return mux
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
		{"control.tar.gz", tarball(t, [][2]string{{"./control", control}})},
		{"data.tar.gz", tarball(t, [][2]string{{"./opt/widget", "a widget\n"}})},
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

// tarball returns a compressed archive of files.
func tarball(t *testing.T, files [][2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	for _, f := range files {
		err := a.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1])), ModTime: time.Unix(1, 0), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = a.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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

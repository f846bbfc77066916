// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// secured is a server that listens with TLS, too, by a certificate that the program made for box.test.
type secured struct {
	*host
	dir     string // of the certificate
	address string // with TLS
}

func openSecured(t *testing.T) *secured {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tls")
	makeCertificate(t, dir)
	h := hostIn(t, t.TempDir(), "127.0.0.1:0")
	h.env = []string{
		"SANDPIT_DOMAIN=box.test", "SANDPIT_TLS_LISTEN=127.0.0.1:0",
		"SANDPIT_TLS_CERT=" + filepath.Join(dir, "cert.pem"), "SANDPIT_TLS_KEY=" + filepath.Join(dir, "key.pem"),
	}
	t.Cleanup(h.sweep)
	h.start()
	found := regexp.MustCompile(`msg="listening with TLS" address=(\S+)`).FindStringSubmatch(h.tail())
	if found == nil {
		t.Fatalf("the server names no address with TLS:\n%s", h.tail())
	}
	return &secured{h, dir, found[1]}
}

// makeCertificate has the program make a certificate, or the next one.
func makeCertificate(t *testing.T, dir string) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "tls", "init", "box.test", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// web returns a client that trusts the authority, and finds every name at the server. With http2 it offers that.
func (s *secured) web(http2 bool) *http.Client {
	s.t.Helper()
	root, err := os.ReadFile(filepath.Join(s.dir, "ca.pem"))
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(root) {
		s.t.Fatal("the authority's file has no certificate")
	}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: http2,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.address)
		},
	}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Whoever reaches the server with TLS has what everybody has: answers, streams both ways, sockets, previews.
func TestAServerWithTLS(t *testing.T) {
	s := openSecured(t)
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			web := s.web(http2)
			resp, err := web.Get("https://api.box.test/health")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK || resp.Proto != name {
				t.Errorf("got %s by %s, want 200 by %s", resp.Status, resp.Proto, name)
			}
			ctx := t.Context()
			c := client.New("https://box.test", s.token, client.Options{HTTP: web})
			box, _, err := c.Create(ctx, v1.CreateSandbox{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Exec(ctx, box.ID, v1.Exec{Argv: []string{"cat"}, Stdin: new("hello")})
			if err != nil || res.Stdout != "hello" {
				t.Errorf("a command: %q, %v", res.Stdout, err)
			}
			var streamed bytes.Buffer
			_, err = c.ExecStream(ctx, box.ID, v1.Exec{Command: new("for i in 1 2 3; do echo $i; sleep 0.1; done")}, func(f client.Frame) error {
				streamed.Write(f.Data)
				return nil
			})
			if err != nil || streamed.String() != "1\n2\n3\n" {
				t.Errorf("a stream: %q, %v", streamed.String(), err)
			}
			s.terminal(t, c, box.ID)
			s.preview(t, c, web, box.ID)
			if err := c.Delete(ctx, box.ID); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a strange name", func(t *testing.T) {
		web := s.web(true)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://box.test/v1/whoami", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "attacker.example" // by the certificate of another name
		req.Header.Set("Authorization", "Bearer "+s.token)
		resp, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("got %s, want 403", resp.Status)
		}
	})
	t.Run("without trust", func(t *testing.T) {
		_, _, err := client.New("https://"+s.address, s.token, client.Options{}).Create(t.Context(), v1.CreateSandbox{})
		if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "the certificate of") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without TLS on its port", func(t *testing.T) {
		_, err := client.New("http://"+s.address, s.token, client.Options{}).Info(t.Context())
		if err == nil || !strings.Contains(err.Error(), "HTTPS") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("renewed", func(t *testing.T) {
		serial := func() string {
			resp, err := s.web(true).Get("https://box.test/health")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.TLS.PeerCertificates[0].SerialNumber.String()
		}
		before := serial()
		makeCertificate(t, s.dir)
		for serial() == before { // the test's time limit ends it
			if t.Context().Err() != nil {
				t.Fatal("the certificate stayed")
			}
		}
	})
}

// terminal types into a terminal, over a WebSocket.
func (s *secured) terminal(t *testing.T, c *client.Client, box string) {
	t.Helper()
	p, err := c.StartProcess(t.Context(), box, v1.StartProcess{Argv: []string{"cat"}, Tty: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	term, err := c.AttachTerminal(t.Context(), box, p.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	if _, err := io.WriteString(term, "word\n"); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	b := make([]byte, 1024)
	for strings.Count(seen.String(), "word") < 2 { // the echo, and the program's
		n, err := term.Read(b)
		if err != nil {
			t.Fatalf("after %q: %v", seen.String(), err)
		}
		seen.Write(b[:n])
	}
}

// preview opens a page that a program inside serves, by a link with a name of its own.
func (s *secured) preview(t *testing.T, c *client.Client, web *http.Client, box string) {
	t.Helper()
	ctx := t.Context()
	if _, err := c.StartProcess(ctx, box, v1.StartProcess{Command: new("cd $(mktemp -d) && echo inside > index.html && exec python3 -m http.server 8000")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, box, v1.Exec{Command: new("until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))' 2>/dev/null; do sleep 0.05; done")}); err != nil {
		t.Fatal(err)
	}
	link, err := c.Preview(ctx, box, v1.CreatePreview{Port: 8000})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(link.URL, "https://8000-") || !strings.Contains(link.URL, ".box.test") {
		t.Errorf("the link is %s", link.URL)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: web.Transport, Jar: jar}).Do(req) // the link sets a cookie
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "inside\n" {
		t.Errorf("%s: %q, %v", resp.Status, body, err)
	}
}

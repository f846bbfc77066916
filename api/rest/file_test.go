// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.create().ID
	path := "/api/v1/sandboxes/" + id
	t.Run("TheRawShapes", func(t *testing.T) {
		data := []byte("a,b\n\x00\xff")
		if a := h.do("PUT", path+"/files/outputs/data.csv", data); a.StatusCode != 204 || len(a.body) != 0 {
			t.Fatalf("got %d %q, want 204 and nothing", a.StatusCode, a.body)
		}
		a := h.do("GET", path+"/files/outputs/data.csv", nil)
		if a.StatusCode != 200 || !bytes.Equal(a.body, data) {
			t.Errorf("got %d %q, want %q", a.StatusCode, a.body, data)
		}
		got := want[any](h, 200, "GET", path+"/files?path=/workspace/outputs", nil)
		if diff := cmp.Diff(got, any([]any{object{"name": "data.csv", "type": "file", "size": 6.0}})); diff != "" {
			t.Error(diff)
		}
		got = want[any](h, 200, "GET", path+"/files", nil)
		if diff := cmp.Diff(got, any([]any{object{"name": "outputs", "type": "dir", "size": 0.0}})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("TheJSONShapes", func(t *testing.T) {
		path := "/v1/sandboxes/" + id
		i := want[v1.FileInfo](h, 201, "POST", path+"/files?path=/workspace/q.txt", object{"content": "hé"})
		if i.Path != "/workspace/q.txt" || i.Size != 3 || i.Type != "file" {
			t.Errorf("got %+v", i)
		}
		want[v1.FileInfo](h, 200, "POST", path+"/files", object{"path": "q.txt", "content": base64.StdEncoding.EncodeToString([]byte("x\xff")), "encoding": "base64"})
		got := want[any](h, 200, "GET", path+"/files?path=/workspace/q.txt", nil)
		if v, _ := got.(object)["version"].(string); len(v) != 32 {
			t.Errorf("got the version %q", v)
		}
		delete(got.(object), "version") // another one each time
		if diff := cmp.Diff(got, any(object{"path": "/workspace/q.txt", "content": "eP8=", "encoding": "base64", "size": 2.0})); diff != "" {
			t.Error(diff)
		}
		if a := h.do("DELETE", path+"/files?path=/workspace/q.txt", nil); a.StatusCode != 204 {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
		want[v1.Problem](h, 404, "GET", path+"/files?path=/workspace/q.txt", nil)
	})
	t.Run("OddNamesAreNames", func(t *testing.T) {
		for _, name := range []string{"a b", "ü.txt", "100%", "%2e", "a?b", "a#b", "x;y", "+", "-", "\"", "\\", "日本語", "...", ".x", strings.Repeat("n", 255)} {
			if a := h.do("PUT", path+"/files/odd/"+url.PathEscape(name), []byte(name)); a.StatusCode != 204 {
				t.Errorf("%q: PUT: got %d %s", name, a.StatusCode, a.body)
			}
			if a := h.do("GET", path+"/files?detail=true&path="+url.QueryEscape("/workspace/odd/"+name), nil); a.StatusCode != 200 {
				t.Errorf("%q: GET by query: got %d %s", name, a.StatusCode, a.body)
			}
			if a := h.do("GET", path+"/files/odd/"+url.PathEscape(name), nil); string(a.body) != name {
				t.Errorf("%q: GET: got %q", name, a.body)
			}
		}
		if got := want[[]v1.FileEntry](h, 200, "GET", path+"/files/odd", nil); len(got) != 15 {
			t.Errorf("listed by route: got %d, want 15", len(got))
		}
	})
	t.Run("PathsThatAreNone", func(t *testing.T) {
		long := strings.Repeat("d/", 2048) + "x"
		for _, p := range []string{
			"/files/../x", "/files/%2e%2e/x", "/files/a/%2e%2e/%2e%2e/x", "/files//etc/passwd", "/files/a//b", "/files/./a", "/files/%2Fetc/passwd",
			"/files/a%00b", "/files/%ff", "/files/" + strings.Repeat("n", 256), "/files/" + long, "/files?path=../x", "/files?path=a%00b",
			"/files?path=" + url.QueryEscape(long), "/files?path=", "/files/a?path=/b",
		} {
			for _, method := range []string{"PUT", "GET", "DELETE"} {
				if pr := want[v1.Problem](h, 422, method, path+p, nil); pr.Code != "invalid" || len(pr.Errors) != 1 || pr.Errors[0].Field != "path" {
					t.Errorf("%s %.60s: got %+v, want invalid about path", method, p, pr)
				}
			}
		}
		want[v1.Problem](h, 422, "PUT", path+"/files", []byte("x"))
		want[v1.Problem](h, 422, "PUT", path+"/files/dir/", []byte("x"))
	})
	t.Run("MovingMakingAndRemoving", func(t *testing.T) {
		if a := h.do("POST", path+"/mkdir", object{"path": "m/n"}); a.StatusCode != 204 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
		want[any](h, 204, "PUT", path+"/files/m/n/f?mode=750", []byte("x"))
		if i := want[v1.FileInfo](h, 200, "GET", path+"/stat?path=m/n/f", nil); i.Mode != "0750" || i.Name != "f" {
			t.Errorf("got %+v", i)
		}
		want[any](h, 204, "POST", path+"/move", object{"from": "m/n/f", "to": "m/g"})
		want[any](h, 204, "PUT", path+"/files/m/h", []byte("y"))
		want[v1.Problem](h, 409, "POST", path+"/move", object{"from": "m/g", "to": "m/h"})
		want[any](h, 204, "POST", path+"/move", object{"from": "m/g", "to": "m/h", "overwrite": true})
		want[v1.Problem](h, 409, "DELETE", path+"/files/m", nil)
		want[any](h, 204, "DELETE", path+"/files/m?recursive=true", nil)
		want[v1.Problem](h, 404, "GET", path+"/stat?path=m", nil)
	})
	t.Run("ActivityTellsOfTransfers", func(t *testing.T) {
		p := want[v1.EventPage](h, 200, "GET", path+"/activity?type=file.upload&sort_order=asc&limit=1", nil)
		if len(p.Items) != 1 || *p.Items[0].Size != 6 || !*p.Items[0].OK || p.NextCursor == nil {
			t.Errorf("got %+v", p)
		}
	})
}

func TestRanges(t *testing.T) {
	t.Parallel()
	h := open(t)
	path := "/v1/sandboxes/" + h.create().ID + "/files/"
	want[any](h, 204, "PUT", path+"f", []byte("0123456789"))
	want[any](h, 204, "PUT", path+"empty", []byte(""))
	for _, c := range []struct {
		spec, body, contentRange string
		status                   int
	}{
		{"bytes=0-3", "0123", "bytes 0-3/10", 206},
		{"bytes=4-", "456789", "bytes 4-9/10", 206},
		{"bytes=-3", "789", "bytes 7-9/10", 206},
		{"bytes=-30", "0123456789", "bytes 0-9/10", 206},
		{"bytes=8-100", "89", "bytes 8-9/10", 206},
		{"bytes=9-9", "9", "bytes 9-9/10", 206},
		{"bytes=10-", "", "bytes */10", 416},
		{"bytes=0-1,4-5", "0123456789", "", 200},
		{"bytes=5-2", "0123456789", "", 200},
		{"bytes=x-y", "0123456789", "", 200},
		{"lines=1-2", "0123456789", "", 200},
	} {
		t.Run(c.spec, func(t *testing.T) {
			a := h.do("GET", path+"f", nil, "Range", c.spec)
			if a.StatusCode != c.status || a.Header.Get("Content-Range") != c.contentRange || (c.status != 416 && string(a.body) != c.body) {
				t.Errorf("got %d %q %q, want %d %q %q", a.StatusCode, a.Header.Get("Content-Range"), a.body, c.status, c.contentRange, c.body)
			}
		})
	}
	t.Run("AnEmptyFile", func(t *testing.T) {
		if a := h.do("GET", path+"empty", nil); a.StatusCode != 200 || len(a.body) != 0 || a.ContentLength != 0 {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	})
	t.Run("Head", func(t *testing.T) {
		a := h.do("HEAD", path+"f", nil)
		if a.StatusCode != 200 || a.ContentLength != 10 || a.Header.Get("Etag") == "" || a.Header.Get("Last-Modified") == "" {
			t.Errorf("got %d %d %v", a.StatusCode, a.ContentLength, a.Header)
		}
		if a := h.do("HEAD", path+"nosuch", nil); a.StatusCode != 404 {
			t.Errorf("got %d", a.StatusCode)
		}
	})
	t.Run("Conditions", func(t *testing.T) {
		tag := h.do("GET", path+"f", nil).Header.Get("Etag")
		if a := h.do("GET", path+"f", nil, "If-None-Match", tag); a.StatusCode != 304 || len(a.body) != 0 {
			t.Errorf("got %d %q, want 304", a.StatusCode, a.body)
		}
		if a := h.do("GET", path+"f", nil, "Range", "bytes=0-0", "If-Range", tag); a.StatusCode != 206 {
			t.Errorf("got %d, want 206", a.StatusCode)
		}
		if a := h.do("GET", path+"f", nil, "Range", "bytes=0-0", "If-Range", `"other"`); a.StatusCode != 200 {
			t.Errorf("got %d, want 200", a.StatusCode)
		}
	})
}

func TestFilesCannotRunAsOurs(t *testing.T) {
	t.Parallel()
	h := open(t)
	path := "/v1/sandboxes/" + h.create().ID + "/files/"
	for name, shown := range map[string]bool{"a.html": false, "a.svg": false, "a.SVG": false, "a.js": false, "a.xml": false, "a": false, "a.pdf": false, "a.png": true, "a.txt": true, "a.csv": true} {
		want[any](h, 204, "PUT", path+name, []byte("<script>alert(1)</script>"))
		a := h.do("GET", path+name, nil)
		if got := a.Header.Get("Content-Disposition") == ""; got != shown {
			t.Errorf("%s: shown: got %v, want %v", name, got, shown)
		}
		if a.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "sandbox;") {
			t.Errorf("%s: headers: got %v", name, a.Header)
		}
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.MaxFile = 1 << 20 })
	path := "/v1/sandboxes/" + h.create().ID + "/files/"
	want[any](h, 204, "PUT", path+"f", []byte("old"))
	old := func(t *testing.T) {
		t.Helper()
		if a := h.do("GET", path+"f", nil); string(a.body) != "old" {
			t.Errorf("afterwards: got %.40q, want the old file", a.body)
		}
	}
	t.Run("OverTheBoundBySize", func(t *testing.T) {
		p := want[v1.Problem](h, 413, "PUT", path+"f", make([]byte, 1<<20+1))
		if p.Code != "too_large" || !strings.Contains(p.Detail, "1048576") {
			t.Errorf("got %+v", p)
		}
		old(t)
	})
	t.Run("OverTheBoundOfUnknownSize", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", h.url+path+"f", io.LimitReader(zeros{}, 3<<20))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+h.token)
		resp, err := plain.Do(req)
		must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != 413 {
			body, _ := io.ReadAll(resp.Body)
			t.Errorf("got %d %s, want 413", resp.StatusCode, body)
		}
		old(t)
	})
	t.Run("CutOff", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", h.url+path+"f", io.MultiReader(strings.NewReader("new"), broken{}))
		must(t, err)
		req.ContentLength = 100
		req.Header.Set("Authorization", "Bearer "+h.token)
		if resp, err := plain.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("got %d, want a broken request", resp.StatusCode)
		}
		old(t)
	})
	t.Run("CutOffOfUnknownSize", func(t *testing.T) {
		conn := h.dial(t)
		_, err := io.WriteString(conn, "PUT "+path+"f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+h.token+"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnew\r\n")
		must(t, err)
		must(t, conn.CloseWrite())
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		if resp.StatusCode != 400 {
			t.Errorf("got %d, want 400", resp.StatusCode)
		}
		old(t)
	})
	t.Run("Stalled", func(t *testing.T) {
		h := openGuarded(t, guard.Options{Stall: 20 * time.Millisecond})
		path := "/v1/sandboxes/" + h.create().ID + "/files/f"
		conn := h.dial(t)
		_, err := io.WriteString(conn, "PUT "+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+h.token+"\r\nContent-Length: 100\r\n\r\nnew")
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		if resp.StatusCode != 504 {
			t.Errorf("got %d, want 504", resp.StatusCode)
		}
		want[v1.Problem](h, 404, "GET", path, nil)
	})
	t.Run("StalledWhereNobodyReads", func(t *testing.T) {
		h := openGuarded(t, guard.Options{Stall: 20 * time.Millisecond})
		conn := h.dial(t)
		_, err := io.WriteString(conn, "PUT /v1/sandboxes/x/files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nnew")
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		if resp.StatusCode != 401 {
			t.Errorf("got %d, want 401", resp.StatusCode)
		}
	})
	t.Run("ALongAnswerAfterABodyIsNoStall", func(t *testing.T) {
		h := openGuarded(t, guard.Options{Stall: 20 * time.Millisecond})
		r := want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/"+h.create().ID+"/exec", object{"command": "sleep 0.2; echo done"})
		if r.Stdout != "done\n" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("PartsAndEncodings", func(t *testing.T) {
		want[v1.Problem](h, 400, "PUT", path+"f", []byte("x"), "Content-Range", "bytes 0-0/3")
		want[v1.Problem](h, 400, "PUT", path+"f", []byte("x"), "Content-Encoding", "gzip")
		want[v1.Problem](h, 415, "PUT", path+"f", []byte("x"), "Content-Encoding", "br")
		old(t)
	})
}

// halfConn is a connection whose end can be told while the answer is read.
type halfConn interface {
	net.Conn
	CloseWrite() error
}

// dial connects as no client does, and speaks HTTP/1.1.
func (h *house) dial(t *testing.T) halfConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(strings.TrimPrefix(h.url, "http://"), "https://"))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if overTLS {
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // it is the server of this test
	}
	return conn.(*net.TCPConn)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

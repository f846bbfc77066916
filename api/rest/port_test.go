// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/ports"
)

// links are previews' of a server whose addresses are easy to tell.
type links struct{}

func (links) Token(p ports.Preview) string {
	return fmt.Sprintf("token+of %s %d", p.Project, p.Port)
}

func (links) SandboxToken(project, sandbox, key string) string {
	return project + " " + sandbox + " " + key
}

func (links) HostToken(id string) string { return "token-of-" + id }

func (links) LinkAddress(_ *http.Request, token string, port int) string {
	return fmt.Sprintf("http://%d-%s.test/", port, token)
}

func (links) Addresses(r *http.Request, id string, port int) (address, path string) {
	return fmt.Sprintf("http://%d-%s.test/", port, id), "http://" + r.Host + "/preview/"
}

// program listens on the loopback that the memory runtime's sandboxes share, and
// serves each connection.
func program(t *testing.T, serve func(*net.TCPConn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				serve(nc.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func echo(nc *net.TCPConn) { _, _ = io.Copy(nc, nc) }

func TestPorts(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	port := program(t, echo)
	list := want[v1.PortList](h, 200, "GET", "/v1/sandboxes/"+s.ID+"/ports", nil)
	found := false
	for _, p := range list.Items {
		if p.Port == port {
			found = true
			if p.Protocol != "tcp" || p.Address != "127.0.0.1" || p.URL != fmt.Sprintf("http://%d-%s.test/", port, s.ID) {
				t.Errorf("got %+v", p)
			}
		}
	}
	if !found {
		t.Errorf("port %d is not in %+v", port, list)
	}
	want[v1.Problem](h.as("strange"), 404, "GET", "/v1/sandboxes/"+s.ID+"/ports", nil)
}

func TestPreviewLinks(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	path := "/v1/sandboxes/" + s.ID + "/previews"
	p := want[v1.Preview](h, 201, "POST", path, object{"port": 8000, "expires_seconds": 60})
	if p.SandboxID != s.ID || p.Port != 8000 || p.URL != "http://8000-"+s.ID+".test/?sandpit_token=token%2Bof+default+8000" ||
		p.BaseURL != "http://8000-"+s.ID+".test/" || !strings.Contains(p.PathURL, "/preview/?sandpit_token=token") || p.ID == "" || p.ExpiresAt.IsZero() {
		t.Errorf("got %+v", p)
	}
	for _, body := range []object{
		{}, {"port": 0}, {"port": 65536}, {"port": -1}, {"port": 8000, "expires_seconds": 0}, {"port": 8000, "expires_seconds": -1},
		{"port": 8000, "expires_seconds": 2592001}, {"port": 8000, "expires_seconds": int64(9223372036854775807)},
	} {
		want[v1.Problem](h, 422, "POST", path, body)
	}
	want[v1.Problem](h.as("default", access.SandboxesRead), 403, "POST", path, object{"port": 8000})
	want[v1.Problem](h.as("strange"), 404, "POST", path, object{"port": 8000})
	without := open(t, func(o *rest.Options) { o.Previews = nil })
	want[v1.Problem](without, 501, "POST", "/v1/sandboxes/"+without.create().ID+"/previews", object{"port": 8000})
}

func (h *house) connect(path string) (*websocket.Conn, *http.Response, error) {
	c, resp, err := websocket.Dial(h.t.Context(), h.url+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	if err == nil {
		h.t.Cleanup(func() { _ = c.CloseNow() })
	}
	return c, resp, err
}

func TestConnectPort(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	at := func(port any) string { return fmt.Sprintf("/v1/sandboxes/%s/ports/%v/connect", s.ID, port) }
	t.Run("CarriesBytesAndEnds", func(t *testing.T) {
		c, _, err := h.connect(at(program(t, echo)))
		must(t, err)
		must(t, c.Write(t.Context(), websocket.MessageBinary, []byte("hello")))
		must(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"end":true}`)))
		got, last := drain(t, c)
		if got != "hello" || last != (v1.PortControl{End: true}) {
			t.Errorf("got %q, %+v", got, last)
		}
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("ItsEndIsOneDirections", func(t *testing.T) {
		took := make(chan string, 1)
		c, _, err := h.connect(at(program(t, func(nc *net.TCPConn) {
			_, _ = io.WriteString(nc, "bye")
			_ = nc.CloseWrite()
			b, _ := io.ReadAll(nc)
			took <- string(b)
		})))
		must(t, err)
		if got, last := drain(t, c); got != "bye" || !last.End {
			t.Fatalf("got %q, %+v", got, last)
		}
		must(t, c.Write(t.Context(), websocket.MessageBinary, []byte("still here")))
		must(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"end":true}`)))
		if got := <-took; got != "still here" {
			t.Errorf("the program got %q", got)
		}
	})
	t.Run("AClientThatGoesIsNoticed", func(t *testing.T) {
		gone := make(chan error, 1)
		c, _, err := h.connect(at(program(t, func(nc *net.TCPConn) {
			_, err := io.ReadAll(nc)
			gone <- err
		})))
		must(t, err)
		_ = c.CloseNow()
		<-gone
	})
	t.Run("RefusesNonsense", func(t *testing.T) {
		for _, words := range []string{`{"end":false}`, `x`, `{}`} {
			c, _, err := h.connect(at(program(t, echo)))
			must(t, err)
			must(t, c.Write(t.Context(), websocket.MessageText, []byte(words)))
			if _, last := drain(t, c); last.Error == nil || last.Error.Code != "malformed" {
				t.Errorf("%s: got %+v", words, last)
			}
		}
	})
	t.Run("SaysWhatIsWrongBefore", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		free := l.Addr().(*net.TCPAddr).Port
		must(t, l.Close())
		for port, status := range map[any]int{free: 503, 0: 422, 65536: 422, "x": 422, "8000%2F..": 422} {
			_, resp, err := h.connect(at(port))
			if err == nil || resp.StatusCode != status {
				t.Errorf("port %v: got %v, %v; want %d", port, resp, err, status)
			}
		}
		_, resp, err := h.as("strange").connect(at(free))
		if err == nil || resp.StatusCode != 404 {
			t.Errorf("of another project: %v", err)
		}
		want[v1.Problem](h, 426, "GET", at(free), nil)
	})
	t.Run("EndsWithTheServer", func(t *testing.T) {
		c, _, err := h.connect(at(program(t, echo)))
		must(t, err)
		h.api.Close()
		if _, last := drain(t, c); last.Error == nil || last.Error.Code != "unavailable" {
			t.Errorf("got %+v", last)
		}
	})
}

// drain reads until a text message.
func drain(t *testing.T, c *websocket.Conn) (got string, last v1.PortControl) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		if kind == websocket.MessageText {
			must(t, json.Unmarshal(data, &last))
			return got, last
		}
		got += string(data)
	}
}

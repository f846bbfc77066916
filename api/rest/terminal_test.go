// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
)

// shown is a joined terminal.
type shown struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
	id   string
	text string
}

func (h *house) join(t *testing.T, path string) *shown {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	header := http.Header{"Authorization": {"Bearer " + h.token}}
	conn, resp, err := websocket.Dial(ctx, h.url+path, &websocket.DialOptions{HTTPHeader: header})
	must(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &shown{t: t, ctx: ctx, conn: conn, id: resp.Header.Get("Sandpit-Process-Id")}
}

// await reads until the terminal has shown text, or a control message satisfies ok.
func (s *shown) await(text string, ok func(v1.TerminalControl) bool) {
	s.t.Helper()
	for text == "" || !strings.Contains(s.text, text) {
		kind, data, err := s.conn.Read(s.ctx)
		if err != nil {
			s.t.Fatalf("waiting for %q after %q: %v", text, s.text, err)
		}
		if kind == websocket.MessageBinary {
			s.text += string(data)
			continue
		}
		var m v1.TerminalControl
		must(s.t, json.Unmarshal(data, &m))
		if ok != nil && ok(m) {
			return
		}
	}
}

func (s *shown) send(kind websocket.MessageType, data string) {
	s.t.Helper()
	must(s.t, s.conn.Write(s.ctx, kind, []byte(data)))
}

func TestTerminalsThatStay(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := "/v1/sandboxes/" + h.create().ID
	one := h.join(t, box+"/terminal?stays=true&cols=90&rows=20&command=stty+-echo%3B+stty+size%3B+read+x%3B+echo+got+%24x%3B+read+y%3B+stty+size%3B+exit+4")
	one.await("20 90", nil)
	one.send(websocket.MessageBinary, "it\n")
	one.await("got it", nil)
	must(t, one.conn.Close(websocket.StatusNormalClosure, "")) // it is left
	l := want[v1.ProcessList](h, 200, "GET", box+"/terminals", nil)
	if one.id == "" || len(l.Items) != 1 || l.Items[0].ProcessID != one.id || !l.Items[0].Tty {
		t.Fatalf("%q: got %+v", one.id, l)
	}
	at := box + "/terminals/" + one.id
	two, three := h.join(t, at), h.join(t, at+"?recent=10")
	two.await("got it", nil)
	for _, m := range []string{`{"resize":{"cols":0,"rows":0}}`, `{"resize":{"cols":1001,"rows":5}}`, `{"signal":"SIGNOSUCH"}`} {
		two.send(websocket.MessageText, m)
		two.await("", func(c v1.TerminalControl) bool {
			return c.Refused != nil && c.Refused.Code == "invalid"
		})
	}
	two.send(websocket.MessageText, `{"resize":{"cols":50,"rows":10}}`)
	two.send(websocket.MessageText, `{"signal":"SIGNOSUCH"}`) // its answer comes after the resize
	two.await("", func(c v1.TerminalControl) bool { return c.Refused != nil })
	want[struct{}](h, 204, "POST", box+"/processes/"+one.id+"/resize", object{"cols": 51, "rows": 11})
	three.send(websocket.MessageBinary, "\n")
	for _, s := range []*shown{two, three} {
		s.await("", func(c v1.TerminalControl) bool {
			return c.Exit != nil && c.Exit.ExitCode == 4
		})
		if !strings.HasSuffix(s.text, "11 51\r\n") {
			t.Errorf("it has shown %q", s.text)
		}
	}
	if strings.Contains(three.text, "20 90") {
		t.Errorf("the last 10 bytes were %q", three.text)
	}
	if l := want[v1.ProcessList](h, 200, "GET", box+"/terminals", nil); len(l.Items) != 0 {
		t.Errorf("got %+v", l)
	}
	want[v1.Problem](h, 426, "GET", at, nil)
	want[v1.Problem](h, 422, "GET", at+"?recent=0", nil, "Connection", "Upgrade", "Upgrade", "websocket")
	want[v1.Problem](h, 422, "GET", box+"/terminals?limit=0", nil)
	_, plain := h.process(box, object{"command": "sleep 1000"})
	want[v1.Problem](h, 409, "GET", strings.Replace(plain, "/processes/", "/terminals/", 1), nil, "Connection", "Upgrade", "Upgrade", "websocket")
	want[v1.Problem](h, 404, "GET", box+"/terminals/nosuchprocess000", nil, "Connection", "Upgrade", "Upgrade", "websocket")
	a := h.do("GET", plain+"/output?recent=0", nil)
	if a.StatusCode != 422 {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
}

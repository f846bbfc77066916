// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// follow opens an event socket, which is told of what happens when follow returns.
func (h *house) follow(ctx context.Context, token string) *websocket.Conn {
	h.t.Helper()
	conn, _, err := websocket.Dial(ctx, h.url+"/socket.io/?EIO=4&transport=websocket", nil)
	must(h.t, err)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	if got := h.next(ctx, conn); !strings.HasPrefix(got, `0{"sid":`) {
		h.t.Fatalf("the first packet is %s", got)
	}
	must(h.t, conn.Write(ctx, websocket.MessageText, []byte(`40{"token":"`+token+`"}`)))
	return conn
}

// next returns the next packet.
func (h *house) next(ctx context.Context, conn *websocket.Conn) string {
	h.t.Helper()
	_, b, err := conn.Read(ctx)
	must(h.t, err)
	return string(b)
}

// event is an event of a socket, in short.
type event struct {
	Name, ID, State, OldState string
}

func (h *house) event(ctx context.Context, conn *websocket.Conn) event {
	h.t.Helper()
	text := h.next(ctx, conn)
	var name string
	type box struct{ ID, State string }
	var body struct {
		Sandbox  box
		OldState string
		box
	}
	rest, ok := strings.CutPrefix(text, "42")
	if err := json.Unmarshal([]byte(rest), &[]any{&name, &body}); err != nil || !ok {
		h.t.Fatalf("the packet %s: %v", text, err)
	}
	if body.Sandbox.ID != "" {
		body.box = body.Sandbox
	}
	return event{name, body.ID, body.State, body.OldState}
}

func TestASocketTellsOfItsProject(t *testing.T) {
	h := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, other := h.follow(ctx, "reader"), h.follow(ctx, "other")
	for _, c := range []*websocket.Conn{conn, other} {
		if got := h.next(ctx, c); !strings.HasPrefix(got, `40{"sid":`) {
			t.Fatalf("a valid token is answered with %s", got)
		}
	}
	id := h.create(`{"name":"box","networkBlockAll":true}`)
	near := h.create(`{"name":"near-` + id + `","networkBlockAll":true}`) // a search for the id finds it, too
	used := func() time.Time {
		t.Helper()
		s, err := h.Engine.Inspect(ctx, write, id)
		must(t, err)
		return s.LastActivity
	}
	before := used()
	if status, text := h.ask("writer", "POST", "/sandbox/"+near+"/stop", ""); status != 200 {
		t.Fatalf("stop: %d %s", status, text)
	}
	var got []event
	defer func() { t.Log(got) }() // where it fails
	until := func(state string) {
		t.Helper()
		for len(got) == 0 || got[len(got)-1].ID != near || got[len(got)-1].State != state {
			got = append(got, h.event(ctx, conn))
		}
	}
	until("stopped")
	if status, text := h.ask("writer", "DELETE", "/sandbox/"+near, ""); status != 200 {
		t.Fatalf("delete: %d %s", status, text)
	}
	until("destroyed")
	if want := (event{"sandbox.created", id, "started", ""}); got[0].Name != want.Name || got[0].ID != want.ID {
		t.Errorf("the first event is %+v", got[0])
	}
	if last := got[len(got)-1]; last.Name != "sandbox.state.updated" || last.OldState == "" {
		t.Errorf("the last event is %+v", last)
	}
	if after := used(); !after.Equal(before) {
		t.Errorf("telling of a sandbox counts as its use: %v, then %v", before, after)
	}
	// What another project hears first is of its own.
	status, text := h.ask("other", "POST", "/sandbox", `{"name":"theirs","networkBlockAll":true}`)
	if status != 200 {
		t.Fatalf("create: %d %s", status, text)
	}
	if e := h.event(ctx, other); e.ID == id || e.ID == near {
		t.Errorf("another project is told of %+v", e)
	}
}

func TestASocketWithoutAValidTokenIsRefused(t *testing.T) {
	h := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := h.follow(ctx, "nobody")
	if got := h.next(ctx, conn); !strings.HasPrefix(got, `44{"message":`) {
		t.Errorf("it is answered with %s", got)
	}
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("and then: %v", err)
	}
}

// TestASocketThatSaysNothingIsEnded: who it is has to be told in time, 10 s.
func TestASocketThatSaysNothingIsEnded(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, h.url+"/socket.io/?EIO=4&transport=websocket", nil)
	must(t, err)
	defer conn.CloseNow()
	if got := h.next(ctx, conn); !strings.HasPrefix(got, `0{"sid":`) {
		t.Fatalf("the first packet is %s", got)
	}
	if _, text, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("then comes %q, %v", text, err)
	}
}

// TestWhatAClientSentAheadIsRead: its token may be there before the connection is a WebSocket.
func TestWhatAClientSentAheadIsRead(t *testing.T) {
	h := open(t)
	u, err := url.Parse(h.url)
	must(t, err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
	must(t, err)
	defer conn.Close()
	head := fmt.Sprintf("GET %s/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", u.Path, u.Host)
	text := `40{"token":"reader"}`
	frame := append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...) // the mask is 0
	_, err = conn.Write(append([]byte(head), frame...))
	must(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	must(t, err)
	defer resp.Body.Close()
	var all string
	for b := make([]byte, 256); !strings.Contains(all, `40{"sid":`); {
		n, err := r.Read(b)
		must(t, err)
		all += string(b[:n])
	}
}

// BenchmarkEventTo1000Sockets is the time from before a change of a sandbox's labels until a client has read its event, with
// 1,000 of them in this process and 2,000 stopped sandboxes on record: the median, the 99th of 100, and that of the slowest.
func BenchmarkEventTo1000Sockets(b *testing.B) {
	const sockets, records = 1000, 2000
	h := open(b)
	id := h.create(`{"name":"work","networkBlockAll":true}`)
	one, err := h.Engine.Inspect(b.Context(), write, id)
	must(b, err)
	must(b, h.Store.Update(b.Context(), func(tx store.Tx) error {
		for i := range records {
			s := *one
			s.ID, s.Key, s.State = sandbox.NewID(), fmt.Sprint("other-", i), sandbox.Stopped
			if err := tx.Sandboxes().Insert(&s); err != nil {
				return err
			}
		}
		return nil
	}))
	ctx, cancel := context.WithCancel(b.Context())
	came, ended := make(chan time.Time, sockets), make(chan struct{}, sockets)
	for range sockets {
		conn := h.follow(ctx, "reader")
		h.next(ctx, conn)
		go func() {
			defer func() { ended <- struct{}{} }()
			for {
				_, text, err := conn.Read(ctx)
				if err != nil {
					return
				}
				if strings.HasPrefix(string(text), "42") {
					came <- time.Now()
				}
			}
		}()
	}
	var all, slowest []time.Duration
	for b.Loop() {
		from := time.Now()
		if status, text := h.ask("writer", "PUT", "/sandbox/work/labels", `{"labels":{"at":"`+from.String()+`"}}`); status != 200 {
			b.Fatalf("%d %s", status, text)
		}
		var most time.Duration
		for range sockets {
			d := (<-came).Sub(from)
			all, most = append(all, d), max(most, d)
		}
		slowest = append(slowest, most)
	}
	cancel()
	for range sockets {
		<-ended
	}
	slices.Sort(all)
	slices.Sort(slowest)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(slowest[len(slowest)/2].Microseconds())/1000, "slowest-p50-ms")
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// socket is a process that is followed over a WebSocket, on which the client may
// write and control it as well.
type socket struct {
	processes service.Processes
	conn      *websocket.Conn
	stall     time.Duration
	caller    access.Caller
	to        byProcess
	plain     bool        // messages of output are its bytes alone
	buf       []byte      // of frames, which one goroutine sends
	input     chan []byte // of the client, on its way to the process; nil bytes: its end
}

// maxWaiting bounds the messages of input that wait for a program to read. A client
// that sends more is held up, and so is what it says behind them.
const maxWaiting = 16

// serveSocket carries output, input and control until the process ends, the client
// goes away or the server stops. The process goes on.
func (a *API) serveSocket(ctx context.Context, c *idempotency.Call, to *byProcess, g *engine.Following, plain bool) error {
	c.Upgrade(ctx, maxTermMessage, func(ctx context.Context, conn *websocket.Conn) {
		s := &socket{processes: a.Processes, stall: c.Stall(), conn: conn, caller: c.Caller, to: *to, plain: plain, input: make(chan []byte, maxWaiting)}
		s.serve(ctx, g)
	})
	return nil
}

func (s *socket) serve(ctx context.Context, g *engine.Following) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A context that ends breaks the connection, and with it the last words: so
	// reading and writing get one that does not, and closing ends them.
	steady := context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(s.read(ctx, steady)) })
	wg.Go(func() { s.feed(ctx) })
	end, err := g.Run(ctx, engine.FollowSink{
		Frame: func(f sandbox.Frame) error { return s.frame(steady, f) },
		Gap:   func(gap engine.Gap) error { return s.tell(steady, v1.ProcessControl{Gap: new(gapOf(gap))}) },
	})
	last, bye := context.WithTimeout(steady, byeTimeout)
	defer bye()
	code := websocket.StatusNormalClosure
	switch {
	case err != nil:
		p, _ := guard.Problem(httpapi.Cause(ctx, err), guard.RequestID(ctx))
		_ = s.tell(last, v1.ProcessControl{Error: &p})
		code = websocket.StatusGoingAway
	case end.Ended:
		_ = s.tell(last, v1.ProcessControl{Exit: new(endedProcess(g.Record(), end))})
	default:
		_ = s.tell(last, v1.ProcessControl{End: &v1.OutputEnd{Cursor: end.LastSeq}})
	}
	_ = s.conn.Close(code, "")
	cancel(nil)
	_ = s.conn.CloseNow()
	wg.Wait()
}

// frame sends a piece of output.
func (s *socket) frame(ctx context.Context, f sandbox.Frame) error {
	if s.plain {
		return s.write(ctx, websocket.MessageBinary, f.Data)
	}
	b := append(s.buf[:0], byte(f.Stream))
	b = binary.BigEndian.AppendUint64(b, uint64(f.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(f.At.UnixNano()))
	s.buf = append(b, f.Data...)
	return s.write(ctx, websocket.MessageBinary, s.buf)
}

// tell sends a control message.
func (s *socket) tell(ctx context.Context, m v1.ProcessControl) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.write(ctx, websocket.MessageText, data)
}

func (s *socket) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.stall)
	defer cancel()
	if err := s.conn.Write(ctx, kind, data); err != nil {
		return fault.Wrap(fault.Canceled, err, "the client has gone")
	}
	return nil
}

// refuse tells that something which the client asked for could not be done.
func (s *socket) refuse(ctx context.Context, err error) {
	p, _ := guard.Problem(err, guard.RequestID(ctx))
	_ = s.tell(context.WithoutCancel(ctx), v1.ProcessControl{Refused: &p}) // the follower finds out about a client that went away
}

// read hands on what the client sends. A control message that cannot be read ends
// the following: a client that sends such does not do what its user thinks.
func (s *socket) read(ctx, steady context.Context) error {
	for {
		kind, data, err := s.conn.Read(steady)
		if err != nil {
			return fault.Wrap(fault.Canceled, err, "the client has gone")
		}
		if kind == websocket.MessageBinary {
			if len(data) > 0 && !s.hand(ctx, data) {
				return ctx.Err()
			}
			continue
		}
		var m v1.ProcessControl
		if err := json.Unmarshal(data, &m); err != nil {
			return fault.New(fault.Malformed, "the control message %q is not JSON of the known form", sandbox.Clip(string(data), 80)).
				WithRemedy(`send standard input as binary messages, and {"signal":"SIGINT"} as text`)
		}
		if err := s.obey(ctx, &m); err != nil {
			s.refuse(ctx, err)
		}
		if m.CloseStdin && !s.hand(ctx, nil) {
			return ctx.Err()
		}
	}
}

// hand queues input; false: the following is over.
func (s *socket) hand(ctx context.Context, data []byte) bool {
	select {
	case s.input <- data:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *socket) obey(ctx context.Context, m *v1.ProcessControl) error {
	if m.Resize != nil {
		if err := s.processes.ResizeProcess(ctx, s.caller, s.to.Ref, s.to.ID, int(m.Resize.Cols), int(m.Resize.Rows)); err != nil {
			return err
		}
	}
	if m.Signal == nil {
		return nil
	}
	sig, err := process.ParseSignal(*m.Signal)
	if err != nil {
		return err
	}
	return s.processes.SignalProcess(ctx, s.caller, s.to.Ref, s.to.ID, sig, false)
}

// feed writes the client's input to the process, however long it does not read. What
// comes behind a message that was refused is refused too: the input has no holes.
func (s *socket) feed(ctx context.Context) {
	var refused error
	for {
		select {
		case <-ctx.Done():
			return
		case data := <-s.input:
			if refused == nil {
				refused = s.put(ctx, data)
			}
			if ctx.Err() != nil {
				return
			}
			if refused != nil {
				s.refuse(ctx, refused)
			}
		}
	}
}

// untakenPause is the least time between two tries of input that was not taken: how
// long one try lasts is up to the sandbox's agent.
const untakenPause = time.Second

// put writes one message of input, nil: its end.
func (s *socket) put(ctx context.Context, data []byte) error {
	r := engine.InputRequest{Data: data, Offset: -1, End: data == nil, Wait: engine.MaxCommandTimeout}
	for {
		began := time.Now()
		taken, err := s.processes.WriteInput(ctx, s.caller, s.to.Ref, s.to.ID, r)
		if err != nil {
			return err
		}
		r.Data = r.Data[taken.Bytes:]
		if len(r.Data) == 0 && (!r.End || taken.Closed) {
			return nil
		}
		if taken.Bytes > 0 {
			continue
		}
		t := time.NewTimer(untakenPause - time.Since(began))
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

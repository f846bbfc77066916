// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/lsp"
)

// peer is the other end of a client, which a test plays.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// pair returns a client that runs until the test ends, and its peer.
func pair(t *testing.T) (*lsp.Client, *peer) {
	t.Helper()
	here, there := net.Pipe()
	c := lsp.New(here)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	t.Cleanup(func() {
		c.Close()
		if err := <-ended; err == nil {
			t.Error("a client ended without a reason")
		}
		_ = there.Close()
	})
	return c, &peer{t, there, bufio.NewReader(there)}
}

// message is what the client sent: its id, if it has one, and its method.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (p *peer) read() message {
	length := 0
	for {
		line, err := p.r.ReadString('\n')
		if err != nil {
			p.t.Errorf("read of the client: %v", err)
			return message{}
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(n)
		}
	}
	b := make([]byte, length)
	var m message
	if _, err := io.ReadFull(p.r, b); err != nil || json.Unmarshal(b, &m) != nil {
		p.t.Errorf("read of the client: %v, %q", err, b)
	}
	return m
}

// write writes bytes, as far as the client takes them.
func (p *peer) write(s string) { _, _ = io.WriteString(p.conn, s) }

// framed is a message as it is sent.
func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func TestAServerThatBreaksTheProtocolIsGivenUp(t *testing.T) {
	for title, c := range map[string]struct{ sends, says string }{
		"no header":            {"hello\r\n\r\n{}", "is no header"},
		"a long header":        {strings.Repeat("A: "+strings.Repeat("x", 1000)+"\r\n", 5), "more than 4096 bytes"},
		"a line without end":   {strings.Repeat("x", 5000), "more than 4096 bytes"},
		"no length":            {"Content-Type: x\r\n\r\n{}", "no Content-Length"},
		"a negative length":    {"Content-Length: -1\r\n\r\n", "is no length"},
		"two lengths":          {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", "or the second one"},
		"a huge length":        {"Content-Length: 8388609\r\n\r\n", "more than 8388608"},
		"a length of 30":       {"Content-Length: 999999999999999999999999999999\r\n\r\n", "is no length"},
		"no JSON":              {framed("nothing"), "cannot be read"},
		"a list of messages":   {framed(`[{"id":1,"result":null}]`), "cannot be read"},
		"deep values":          {framed(strings.Repeat("[", 100_000)), "deep in values"},
		"another's id":         {framed(`{"id":7,"result":null}`), "request 7, which was not sent"},
		"no id of ours":        {framed(`{"id":"1","result":null}`), "which was not sent"},
		"a fraction":           {framed(`{"id":1.5,"result":null}`), "which was not sent"},
		"a negative id":        {framed(`{"id":-1,"result":null}`), "which was not sent"},
		"neither":              {framed(`{"jsonrpc":"2.0"}`), "neither a request nor a response"},
		"an error of nothing":  {framed(`{"id":null,"error":{"code":-32700,"message":"what?"}}`), "what?"},
		"an id that is a list": {framed(`{"id":[1],"method":"x"}`), "neither a number nor a text"},
		"an id of 300 bytes":   {framed(`{"id":"` + strings.Repeat("x", 300) + `","method":"x"}`), "at most 256 bytes"},
		"a configuration":      {framed(`{"id":1,"method":"workspace/configuration","params":{"items":7}}`), "configuration cannot be read"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			client, p := pair(t)
			go func() {
				p.read()
				p.write(c.sends)
			}()
			_, err := client.Symbols(t.Context(), "x")
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 1000 {
				t.Errorf("%.200s; want %q", err, c.says)
			}
			<-client.Done()
			if _, err := client.Symbols(t.Context(), "x"); !fault.Is(err, fault.Unavailable) {
				t.Errorf("asked again: %v", err)
			}
		})
	}
}

func TestAStreamThatEndsEndsTheClient(t *testing.T) {
	for title, sends := range map[string]string{"at once": "", "in a header": "Content-Le", "behind a header": "Content-Length: 5\r\n\r\n", "in a message": "Content-Length: 5\r\n\r\n{"} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c, p := pair(t)
			go func() {
				p.read()
				p.write(sends)
				_ = p.conn.Close()
			}()
			if _, err := c.Symbols(t.Context(), "x"); !fault.Is(err, fault.Unavailable) || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestOfMoreSymbolsThanTheBoundTheFirstOfAProjectAreTold(t *testing.T) {
	const last = `{"name":"last","location":{"uri":"u"}}`
	beyond := strings.Repeat(`{"location":{}},`, lsp.MaxSymbols-1)
	for title, c := range map[string]struct {
		result string
		code   fault.Code // of a file
	}{
		"as many as the bound":        {"[" + beyond + last + "]", ""},
		"more":                        {"[" + beyond + last + `,{"name":"over","location":{}}]`, fault.TooLarge},
		"more within one":             {`[{"location":{},"children":[` + strings.TrimPrefix(beyond, `{"location":{}},`) + last + `,{"name":"over","location":{}}]}]`, fault.TooLarge},
		"one behind one that is full": {`[{"location":{},"children":[` + strings.TrimPrefix(beyond, `{"location":{}},`) + last + `]},{"name":"over","location":{}}]`, fault.TooLarge},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			client, p := pair(t)
			go func() {
				p.read()
				p.write(framed(`{"id":1,"result":` + c.result + `}`))
				p.read()
				p.write(framed(`{"id":2,"result":` + c.result + `}`))
			}()
			all, err := client.Symbols(t.Context(), "x")
			if err != nil || len(all) != lsp.MaxSymbols || all[len(all)-1].Name != "last" {
				t.Errorf("of the project: %d symbols, %v", len(all), err)
			}
			all, err = client.DocumentSymbols(t.Context(), "u")
			if got := fault.Of(err); got != c.code || err == nil && len(all) != lsp.MaxSymbols {
				t.Errorf("of a file: %d symbols, %v", len(all), err)
			}
		})
	}
}

func TestAnswersThatAreNoneCostTheirCallerAlone(t *testing.T) {
	for title, c := range map[string]struct {
		result string
		code   fault.Code
	}{
		"a number":              {`7`, fault.Unavailable},
		"an object":             {`{}`, fault.Unavailable},
		"a symbol nowhere":      {`[{"name":"a","kind":5}]`, fault.Unavailable},
		"a fraction of a kind":  {`[{"name":"a","kind":5.5,"location":{"uri":"u"}}]`, fault.Unavailable},
		"a line below zero":     {`[{"name":"a","kind":5,"location":{"uri":"u","range":{"start":{"line":-1,"character":0}}}}]`, fault.Unavailable},
		"children of an object": {`[{"location":{},"children":{}}]`, fault.Unavailable},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			client, p := pair(t)
			go func() {
				p.read()
				p.write(framed(`{"id":1,"result":` + c.result + `}`))
				p.read()
				p.write(framed(`{"id":2,"result":[{"name":"a","kind":5,"location":{"uri":"u"}}]}`))
			}()
			if all, err := client.Symbols(t.Context(), "x"); !fault.Is(err, c.code) {
				t.Errorf("%d symbols, %v; want %s", len(all), err, c.code)
			}
			if all, err := client.Symbols(t.Context(), "x"); err != nil || len(all) != 1 || all[0].Kind != 5 {
				t.Errorf("asked again: %v, %v", all, err)
			}
		})
	}
}

// overdue is a context whose deadline passes when over is closed.
type overdue struct {
	context.Context
	over chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.over }

func (o overdue) Err() error {
	select {
	case <-o.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestAServerThatDoesNotAnswerCostsTheTimeOfItsCaller(t *testing.T) {
	c, p := pair(t)
	ctx := overdue{t.Context(), make(chan struct{})}
	read := make(chan message, 4)
	go func() {
		read <- p.read()
		close(ctx.over)
		read <- p.read()
		p.write(framed(`{"id":1,"result":[{"name":"late","location":{}}]}`)) // nobody waits for it
		read <- p.read()
		p.write(framed(`{"id":2,"result":null}`))
		p.write(framed(`{"id":2,"result":null}`)) // and twice
		read <- p.read()
		p.write(framed(`{"id":3,"error":{"code":-32803,"message":"not now"}}`))
	}()
	if _, err := c.Symbols(ctx, "x"); !fault.Is(err, fault.Timeout) || !strings.Contains(err.Error(), "workspace/symbol") {
		t.Errorf("a server that does not answer: %v", err)
	}
	if asked, canceled := <-read, <-read; asked.Method != "workspace/symbol" || canceled.Method != "$/cancelRequest" {
		t.Errorf("it was told %+v, %+v", asked, canceled)
	}
	if all, err := c.Symbols(t.Context(), "x"); err != nil || len(all) != 0 {
		t.Errorf("the next request: %v, %v", all, err)
	}
	_, err := c.Symbols(t.Context(), "x")
	if e, ok := errors.AsType[*lsp.ResponseError](err); !ok || !fault.Is(err, fault.State) || e.Code != -32803 || e.Message != "not now" {
		t.Errorf("a refusal: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.Symbols(gone, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that went away: %v", err)
	}
}

func TestAServerThatDoesNotReadCostsTheTimeOfItsCaller(t *testing.T) {
	c, p := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for range 3 {
		if err := c.Open(ctx, lsp.Document{URI: "u", Text: strings.Repeat("x", 1<<20)}); err != nil && !fault.Is(err, fault.Timeout) {
			t.Errorf("%v", err)
		}
	}
	// And one that asks without reading what it is answered is given up.
	go func() {
		for range 100 {
			p.write(framed(`{"id":"a","method":"workspace/workspaceFolders"}`))
		}
	}()
	<-c.Done()
	if _, err := c.Symbols(t.Context(), "x"); !strings.Contains(fmt.Sprint(err), "without reading an answer") {
		t.Errorf("%v", err)
	}
}

func TestRequestsOfTheServerAreAnswered(t *testing.T) {
	c, p := pair(t)
	done := make(chan error, 1)
	go func() { done <- c.Initialize(t.Context(), "/a project", nil) }()
	first := p.read()
	if first.Method != "initialize" {
		t.Fatalf("it begins with %+v", first)
	}
	for _, one := range []struct{ sends, result string }{
		{`{"id":1,"method":"workspace/configuration","params":{"items":[{"section":"a"},{"section":"b"}]}}`, "[null,null]"},
		{`{"id":"two","method":"client/registerCapability","params":{}}`, "null"},
		{`{"id":-3,"method":"window/workDoneProgress/create","params":{"token":1}}`, "null"},
		{`{"id":4,"method":"workspace/workspaceFolders"}`, `[{"uri":"file:///a%20project","name":"a%20project"}]`},
		{`{"id":5,"method":"workspace/applyEdit","params":{}}`, ""},
	} {
		p.write(framed(`{"method":"window/logMessage","params":{"message":"beside it"}}`))
		p.write(framed(one.sends))
		got := p.read()
		if one.result == "" && !strings.Contains(string(got.Error), "-32601") || string(got.Result) != one.result {
			t.Errorf("%s is answered with %s, %s", one.sends, got.Result, got.Error)
		}
		var asked message
		if err := json.Unmarshal([]byte(one.sends), &asked); err != nil || string(asked.ID) != string(got.ID) {
			t.Errorf("%s has the id %s in its answer", one.sends, got.ID)
		}
	}
	p.write(framed(`{"id":1,"result":{"capabilities":{}}}`))
	for _, method := range []string{"initialized", "workspace/didChangeConfiguration"} {
		if m := p.read(); m.Method != method || m.ID != nil {
			t.Errorf("then comes %+v, not %s", m, method)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAllFormsOfAnAnswerAreRead(t *testing.T) {
	c, p := pair(t)
	next := func(result string) {
		go func() {
			m := p.read()
			p.write(framed(`{"id":` + string(m.ID) + `,"result":` + result + `}`))
		}()
	}
	at := `"range":{"start":{"line":1,"character":2},"end":{"line":3,"character":4}}`
	where := lsp.Range{Start: lsp.Position{Line: 1, Character: 2}, End: lsp.Position{Line: 3, Character: 4}}
	next(`[{"name":"a","kind":5,` + at + `,"children":[{"name":"b","kind":6,` + at + `}]},{"name":"c","kind":12,"location":{"uri":"other",` + at + `}}]`)
	all, err := c.DocumentSymbols(t.Context(), "u")
	want := []lsp.Symbol{{"a", 5, lsp.Location{URI: "u", Range: where}}, {"b", 6, lsp.Location{URI: "u", Range: where}}, {"c", 12, lsp.Location{URI: "other", Range: where}}}
	if err != nil || fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", all, err)
	}
	items := `[{"label":"a","kind":3,"documentation":"text"},{"label":"b","documentation":{"kind":"markdown","value":"*text*"}},{"label":"c","documentation":null}]`
	for _, form := range []string{items, `{"isIncomplete":false,"items":` + items + `}`} {
		next(form)
		list, err := c.Complete(t.Context(), "u", lsp.Position{})
		if err != nil || list.Incomplete || len(list.Items) != 3 || list.Items[0].Documentation != (lsp.Documentation{Kind: "plaintext", Value: "text"}) ||
			list.Items[1].Documentation != (lsp.Documentation{Kind: "markdown", Value: "*text*"}) || list.Items[2].Documentation != (lsp.Documentation{}) {
			t.Errorf("%+v, %v", list, err)
		}
	}
	next("[" + strings.Repeat(`{"label":"x"},`, lsp.MaxCompletions) + `{"label":"x"}]`)
	if list, err := c.Complete(t.Context(), "u", lsp.Position{}); err != nil || !list.Incomplete || len(list.Items) != lsp.MaxCompletions {
		t.Errorf("%d of too many, %t, %v", len(list.Items), list.Incomplete, err)
	}
}

// bytesOf is a server that says what it is given, and reads nothing.
type bytesOf struct {
	io.Reader
	io.Writer
}

func (bytesOf) Close() error { return nil }

// FuzzServer feeds the client any bytes of a server: it ends with an error.
func FuzzServer(f *testing.F) {
	for _, s := range []string{
		framed(`{"id":1,"result":[{"name":"a","kind":5,"location":{"uri":"u","range":{"start":{"line":1,"character":2},"end":{"line":3,"character":4}}}}]}`),
		framed(`{"id":1,"result":{"isIncomplete":true,"items":[{"label":"a","documentation":{"kind":"markdown","value":"b"}}]}}`),
		framed(`{"id":1,"error":{"code":-32603,"message":"no"}}`),
		framed(`{"id":"x","method":"workspace/configuration","params":{"items":[{}]}}`) + framed(`{"method":"$/progress"}`),
		"content-length: 2\n\n{}",
		"Content-Length: 99\r\n\r\n{",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		started := make(chan struct{})
		gate := io.MultiReader(readerFunc(func([]byte) (int, error) { <-started; return 0, io.EOF }), strings.NewReader(string(b)))
		c := lsp.New(bytesOf{gate, writerFunc(func(p []byte) (int, error) {
			select {
			case <-started:
			default:
				close(started)
			}
			return len(p), nil
		})})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(context.Background()) }()
		_, err := c.Symbols(t.Context(), "x")
		switch fault.Of(err) {
		case fault.Unavailable, fault.State, fault.TooLarge:
		default:
			if err != nil {
				t.Errorf("%v", err)
			}
		}
		if err := <-ended; err == nil || len(err.Error()) > 4<<10 {
			t.Errorf("it ended with %v", err)
		}
		_, _ = c.Complete(t.Context(), "u", lsp.Position{})
	})
}

type (
	readerFunc func([]byte) (int, error)
	writerFunc func([]byte) (int, error)
)

func (f readerFunc) Read(b []byte) (int, error)  { return f(b) }
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/test/browser"
)

// meter stands before a server and counts what streams it holds open: answers that are events, and WebSockets.
type meter struct {
	mu   sync.Mutex
	open map[*http.Request]string // the path of each
	most int
}

// measured returns the address of a meter before a server.
func measured(t *testing.T, s *server) (*meter, string) {
	t.Helper()
	m := &meter{open: make(map[*http.Request]string)}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(must(url.Parse(s.url)))
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusSwitchingProtocols || strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
				m.begin(r.Request)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // the server is away
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, new(int)))
		defer m.end(r)
		defer func() { _ = recover() }() // how the proxy ends an answer that broke off
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return m, front.URL
}

func (m *meter) begin(r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[r] = r.URL.Path
	m.most = max(m.most, len(m.open))
}

// visitKey is of what tells one request of the browser's from others: the proxy makes another of it.
type visitKey struct{}

func (m *meter) end(in *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.open {
		if r.Context().Value(visitKey{}) == in.Context().Value(visitKey{}) {
			delete(m.open, r)
		}
	}
}

// paths are those of the streams that are open.
func (m *meter) paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, p := range m.open {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// has waits until so many are open.
func (m *meter) has(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for len(m.paths()) != n {
		if time.Now().After(deadline) {
			t.Fatalf("the server holds open %q, want %d", m.paths(), n)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// hides has the page believe that nobody sees it, or that somebody does again, as another tab in front of it has.
func (p *person) hides(yes bool) {
	p.t.Helper()
	await[bool](p.t, p.tab, "(Object.defineProperty(document, 'hidden', {configurable: true, get: () => %t}), document.dispatchEvent(new Event('visibilitychange')))", yes)
}

func TestATabHoldsFewStreams(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	furnish(t, s)
	for i := range 8 {
		s.do(t, "create", "--name", fmt.Sprintf("one-of-many-%d", i))
	}
	m, address := measured(t, s)
	one := signed(t, p, address, s.token)
	one.reads("one-of-many-7")
	m.has(t, 1)
	if got := m.paths(); got[0] != "/v1/events" {
		t.Errorf("the stream is %q", got)
	}
	for _, c := range consolePages() {
		if err := browser.Visit(one.tab, address+"/console"+c.path); err != nil {
			t.Fatal(err)
		}
		one.reads(c.has)
	}
	const counter = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo count-$i-; sleep 0.02; done"
	s.do(t, "exec", "--detach", "--name", "counter", "shop", "--", "sh", "-c", counter)
	one.fromList("Sandboxes")
	one.presses("shop")
	one.presses("Terminal")
	one.presses("New terminal")
	one.until("its shell is there", "document.querySelector('.xterm-rows')?.innerText.includes('$')")
	m.has(t, 2)
	await[bool](t, one.tab, "document.querySelector('.xterm-helper-textarea').focus() === undefined")
	if err := browser.Type(one.tab, "echo typed-$((20+22))\r"); err != nil {
		t.Fatal(err)
	}
	one.until("its answer is shown", "document.querySelector('.xterm-rows').innerText.includes('typed-42')")
	terminal := await[string](t, one.tab, "location.href")
	one.presses("Processes")
	one.until("it is listed", "[...document.querySelectorAll('table.list button')].some(b => b.innerText.includes('count-') && (b.click(), true))")
	one.until("it counts", "/count-[0-9]+-/.test(document.querySelector('.log')?.textContent ?? '')")
	m.has(t, 2) // the terminal is left
	if m.most > 3 {
		t.Errorf("there were %d streams at a time", m.most)
	}

	// Nobody looks: nothing is held, though the server tells and the command writes.
	one.hides(true)
	m.has(t, 0)
	s.do(t, "create", "--name", "while-hidden")
	s.do(t, "rm", "-f", "one-of-many-3")
	before := await[int](t, one.tab, "Number([...document.querySelector('.log').textContent.matchAll(/count-([0-9]+)-/g)].at(-1)[1])")
	s.kill(t)
	s.again(t)
	m.has(t, 0)
	one.hides(false)
	m.has(t, 2)
	one.until("the output goes on", "Number([...document.querySelector('.log').textContent.matchAll(/count-([0-9]+)-/g)].at(-1)[1]) > %d", before)
	if !await[bool](t, one.tab, "[...document.querySelector('.log').textContent.matchAll(/count-([0-9]+)-/g)].every((m, i) => Number(m[1]) === i + 1)") {
		t.Error("of the output something is missing, or there twice")
	}
	if err := browser.Visit(one.tab, terminal); err != nil {
		t.Fatal(err)
	}
	one.until("the terminal is joined", "document.querySelector('.xterm-rows')?.innerText.includes('typed-42')")
	m.has(t, 2)
	one.hides(true)
	m.has(t, 0)
	one.hides(false)
	m.has(t, 2)
	one.until("the terminal is joined again", "document.querySelector('.xterm-rows')?.innerText.includes('typed-42')")
	one.fromList("Sandboxes")
	one.reads("while-hidden")
	one.until("what was deleted is gone", "!document.body.innerText.includes('one-of-many-3')")
	m.has(t, 1)

	// What was typed outlasts a kill of the server, in a form and beside a command.
	one.presses("Create a sandbox")
	one.fills("Name", "typed-before")
	s.kill(t)
	one.reads("The server has not answered for")
	s.again(t)
	one.until("it goes on", "!document.body.innerText.includes('The server has not answered for')")
	one.presses("Create")
	one.until("it is made as it was typed", "document.querySelector('h1')?.innerText.includes('typed-before')")
	for _, tab := range []*person{one.beside(address + "/console/sandboxes"), one.beside(address + "/console/sandboxes")} {
		tab.reads("typed-before")
	}
	m.has(t, 3) // a tab, one stream
}

// fromList opens a page by its link in the header.
func (p *person) fromList(name string) {
	p.t.Helper()
	p.until("there is a link "+name, "[...document.querySelectorAll('header a, h1 a')].some(a => a.innerText.trim() === %q && (a.click(), true))", name)
}

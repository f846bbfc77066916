// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// crowded returns the address of a proxy before a server, which has n sandboxes where the server has one: each is as that one, with a
// name, an id and a label of its own. All else is the server's.
func crowded(t *testing.T, s *server, n int) string {
	t.Helper()
	type page struct {
		Items []map[string]any `json:"items"`
		Next  *string          `json:"next_cursor"`
	}
	many := func(r *http.Response, from, limit int) error {
		var all page
		err := json.NewDecoder(r.Body).Decode(&all)
		if err = errors.Join(err, r.Body.Close()); err != nil || len(all.Items) != 1 {
			return fmt.Errorf("the list has %d sandboxes: %v", len(all.Items), err)
		}
		one := all.Items[0]
		all.Items = nil
		for i := from; i < min(n, from+limit); i++ {
			next := maps.Clone(one)
			next["id"], next["key"], next["metadata"] = fmt.Sprintf("many%012d", n-i), fmt.Sprintf("many-%05d", i), map[string]string{"number": strconv.Itoa(i)}
			all.Items = append(all.Items, next)
		}
		if from+limit < n {
			all.Next = new(strconv.Itoa(from + limit))
		}
		text := must(json.Marshal(all))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(must(url.Parse(s.url)))
			r.Out.Host = r.In.Host
			if r.In.URL.Path == "/v1/sandboxes" {
				r.Out.Header.Set("Accept-Encoding", "identity")
				q := r.Out.URL.Query()
				q.Del("cursor")
				r.Out.URL.RawQuery = q.Encode()
				*r.Out = *r.Out.WithContext(context.WithValue(r.Out.Context(), visitKey{}, r.In.URL.Query()))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			q, list := r.Request.Context().Value(visitKey{}).(url.Values)
			if !list || r.Request.Method != http.MethodGet || r.StatusCode != http.StatusOK {
				return nil
			}
			from, _ := strconv.Atoi(q.Get("cursor"))
			limit, _ := strconv.Atoi(q.Get("limit"))
			return many(r, from, limit)
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // how the proxy ends an answer that broke off
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return front.URL
}

// nodes are how many elements the page has.
func (p *person) nodes() int {
	p.t.Helper()
	return await[int](p.t, p.tab, "document.querySelectorAll('*').length")
}

// heap is what the page's scripts hold, in bytes, without what is garbage.
func (p *person) heap() float64 {
	p.t.Helper()
	if _, err := chromedp.Call(p.tab, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		p.t.Fatal(err)
	}
	use, err := chromedp.Call(p.tab, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	return use.UsedSize
}

// TestTenThousandSandboxes has the list of so many: the page has those rows that are in view.
func TestTenThousandSandboxes(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "shop")
	const n, most = 10_000, 2000
	one := signed(t, p, crowded(t, s, n), s.token)
	one.until("all are there", "document.querySelector('.filters [role=status]')?.innerText === '%d of %[1]d'", n)
	small := func(where string) {
		t.Helper()
		got := one.nodes()
		if t.Logf("%s: %d elements", where, got); got > most {
			t.Errorf("%s: the page has %d elements, at most %d", where, got, most)
		}
	}
	one.until("the first is in view", "document.querySelector('.rows')?.innerText.includes('many-00000')")
	small("at the top")
	if got := await[string](t, one.tab, "document.querySelector('.rows').getAttribute('aria-rowcount')"); got != strconv.Itoa(n+1) {
		t.Errorf("the table has %s rows", got)
	}
	await[bool](t, one.tab, "scrollTo(0, document.documentElement.scrollHeight / 2) === undefined")
	one.until("the middle is in view", "[...document.querySelectorAll('.row .name')].some(r => /^many-0[45]/.test(r.innerText) && r.getBoundingClientRect().top > 0 && r.getBoundingClientRect().bottom < innerHeight)")
	small("in the middle")
	await[bool](t, one.tab, "scrollTo(0, document.documentElement.scrollHeight) === undefined")
	one.until("the last is in view", "[...document.querySelectorAll('.row .name')].some(r => r.innerText.startsWith('many-%05d') && r.getBoundingClientRect().bottom <= innerHeight)", n-1)
	small("at the end")
	one.fills("Search", "number=7777")
	one.until("one is found", "document.querySelector('.filters [role=status]').innerText === '1 of %d' && document.querySelector('.rows').innerText.includes('many-07777')", n)
	one.fills("Search", "")
	await[bool](t, one.tab, "document.querySelector('.row input[type=checkbox]').click() === undefined")
	one.presses(fmt.Sprintf("Choose all %d", n))
	one.reads(fmt.Sprintf("%d chosen", n))
	small("all of them chosen")
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}
}

// TestMuchOutput follows a command that writes without a pause: the page has the end of it, in few elements, and lets go of the rest.
func TestMuchOutput(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "shop")
	one := signed(t, p, s.url, s.token)
	one.presses("shop")
	one.presses("Processes")
	one.reads("Nothing has run here yet")
	before := one.heap()
	// 10 MB a second, of both streams by turns: a thousand lines of 100 characters, a hundred times a second. The log keeps 16 MiB of each.
	const most, mostHeap = 2000, 24 << 20
	s.do(t, "exec", "--detach", "shop", "--", "python3", "-c", `
import sys, time
began = time.monotonic()
for i in range(300):
    to = (sys.stdout, sys.stderr)[i % 2]
    to.write("".join("line %09d %s\n" % (i * 1000 + j, "x" * 84) for j in range(1000)))
    to.flush()
    time.sleep(max(0, began + i / 100 - time.monotonic()))
print("all-of-it-" + "is-written")
`)
	one.until("it is listed", "[...document.querySelectorAll('table.list button')].some(b => b.innerText.includes('began') && (b.click(), true))")
	one.until("its output comes", "/line [0-9]{9}/.test(document.querySelector('.log')?.textContent ?? '')")
	look := func(when string) {
		t.Helper()
		got, held, text := one.nodes(), one.heap()-before, await[int](t, one.tab, "document.querySelector('.log').textContent.length")
		t.Logf("%s: %d elements, %.1f MB more on the heap, %d characters", when, got, held/(1<<20), text)
		if got > most || held > mostHeap || text > 1<<20+64<<10 {
			t.Errorf("%s: the page has %d elements, %.0f bytes more on the heap, %d characters; at most %d, %d and a mebibyte", when, got, held, text, most, mostHeap)
		}
	}
	ended := false
	deadline := time.Now().Add(bound)
	for i := 0; !ended; i++ {
		look(fmt.Sprint("look ", i))
		ended = await[bool](t, one.tab, "document.querySelector('.log').textContent.includes('all-of-it-is-written') || new Promise(d => setTimeout(() => d(false), 300))")
		if time.Now().After(deadline) {
			t.Fatalf("its end has not come: %s", await[string](t, one.tab, "document.querySelector('main').innerText.slice(0, 1500) + ' … ' + document.querySelector('.log').textContent.slice(-500)"))
		}
	}
	look("at the end")
	one.reads("before this are in the download")
	one.reads("exit 0")
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}
}

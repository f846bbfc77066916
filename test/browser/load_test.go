// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/test/browser/cost"
)

// crowded returns the address of a proxy before a server, which has n sandboxes where the server has one.
func crowded(t *testing.T, s *server, n int) string {
	t.Helper()
	c, err := cost.NewCrowd(s.url, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.URL
}

// nodes are how many elements the page has.
func (p *person) nodes() int {
	p.t.Helper()
	n, err := cost.Elements(p.tab)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// heap is what the page's scripts hold, in bytes, without what is garbage.
func (p *person) heap() float64 {
	p.t.Helper()
	held, err := cost.Heap(p.tab)
	if err != nil {
		p.t.Fatal(err)
	}
	return held
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
	const most, mostHeap, mostAtEnd = 2000, 8 << 20, 4 << 20 // meanwhile some waits to be drawn
	s.do(t, append([]string{"exec", "--detach", "shop", "--"}, cost.Writer(3)...)...)
	one.until("it is listed", "[...document.querySelectorAll('table.list button')].some(b => b.innerText.includes('began') && (b.click(), true))")
	one.until("its output comes", "/line [0-9]{9}/.test(document.querySelector('.log')?.textContent ?? '')")
	look := func(when string, mostHeap float64) {
		t.Helper()
		got, held, text := one.nodes(), one.heap()-before, await[int](t, one.tab, "document.querySelector('.log').textContent.length")
		t.Logf("%s: %d elements, %.1f MB more on the heap, %d characters", when, got, held/(1<<20), text)
		if got > most || held > mostHeap || text > 1<<20+64<<10 {
			t.Errorf("%s: the page has %d elements, %.0f bytes more on the heap, %d characters; at most %d, %.0f and a mebibyte", when, got, held, text, most, mostHeap)
		}
	}
	ended := false
	deadline := time.Now().Add(bound)
	for i := 0; !ended; i++ {
		look(fmt.Sprint("look ", i), mostHeap)
		ended = await[bool](t, one.tab, "document.querySelector('.log').textContent.includes('"+cost.Wrote+"') || new Promise(d => setTimeout(() => d(false), 300))")
		if time.Now().After(deadline) {
			t.Fatalf("its end has not come: %s", await[string](t, one.tab, "document.querySelector('main').innerText.slice(0, 1500) + ' … ' + document.querySelector('.log').textContent.slice(-500)"))
		}
	}
	one.reads("before this are in the download")
	one.reads("exit 0")
	look("at the end", mostAtEnd)
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}
}

// TestMuchHappens looks at the activity of a sandbox while much happens: its list begins anew rather than grow, and what was before is read
// without a gap.
func TestMuchHappens(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "shop")
	c := client.New(s.url, s.token, client.Options{})
	ran := 0
	run := func(n int) {
		t.Helper()
		for range n {
			ran++
			if _, err := c.Exec(t.Context(), "shop", v1.Exec{Command: new(fmt.Sprintf("echo count-%d-", ran))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	const counts = "[...document.querySelectorAll('.events > li')].map(e => Number(/count-([0-9]+)-/.exec(e.innerText)?.[1] ?? 0))"
	run(60)
	one := signed(t, p, s.url, s.token)
	one.presses("shop")
	one.turns("activity")
	one.until("the last is there", "%s[0] === %d", counts, ran)
	one.presses("What was before")
	one.until("the first is there", "%s.includes(1)", counts)
	for range 5 {
		run(60)
		one.until("the last is there", "%s[0] === %d", counts, ran)
		if n := await[int](t, one.tab, counts+".length"); n > 200 {
			t.Fatalf("after %d commands the list has %d entries", ran, n)
		}
	}
	for await[bool](t, one.tab, "!"+counts+".includes(1)") {
		n := await[int](t, one.tab, counts+".length")
		one.presses("What was before")
		one.until("there is more", "%s.length > %d", counts, n)
	}
	if !await[bool](t, one.tab, "(all => all.length >= %d && all.slice(0, %[1]d).every((n, i) => n === %[1]d - i))(%s)", ran, counts) {
		t.Errorf("of %d commands some are missing, or there twice: %v", ran, await[[]int](t, one.tab, counts))
	}
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}
}

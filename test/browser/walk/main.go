// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command walk drives the browser by lines on its standard input, one step each, for who looks at the console by hand and has
// no screen, or wants the same steps twice:
//
//	open /console/sandboxes    a path of the server's, or an address
//	click Create a sandbox     what is called so: a button, a link, a row, an input's label
//	type shop                  text, where the focus is
//	fill Name = shop-2         the input with a label
//	press Control+k            a key, with modifiers
//	wait running               until the page has a text
//	size 360 740               the page's width and height in pixels
//	shot page.png              a picture of what is shown
//	text                       what the page says
//	focus                      what has the focus
//	js document.title          what an expression is
//
// The argument is the server's address, such as what `sandpit console --print` says. After each step it prints ok, or what
// failed, and what the browser complains of. A file that grows makes it wait for more: tail -f steps | walk ADDRESS.
package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"

	"sandpit.dev/test/browser"
)

// bound is how long a step may take.
const bound = 15 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: walk ADDRESS, with steps on standard input")
	}
	base, err := url.Parse(os.Args[1])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p, err := browser.Get(ctx, browser.Dir())
	if err != nil {
		return err
	}
	profile, err := os.MkdirTemp("", "sandpit-walk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	tab, done, err := p.Open(ctx, profile, complain)
	if err != nil {
		return err
	}
	defer done()
	if err := browser.Visit(tab, base.String()); err != nil {
		return err
	}
	w := walker{tab, base}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if verb == "" || strings.HasPrefix(verb, "#") {
			continue
		}
		said, err := w.step(verb, strings.TrimSpace(rest))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			said = "failed: " + err.Error()
		}
		fmt.Println(cmp.Or(said, "ok"))
	}
	return nil
}

func complain(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		fmt.Println("the browser says:", e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		fmt.Println("the page's script failed:", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	}
}

type walker struct {
	tab  context.Context
	base *url.URL // the server's
}

// named is an expression for what is called so: all that a click reaches, an exact name before one that only begins so.
const named = `(name => { const all = [...document.querySelectorAll('button, a, summary, [role=option], label, td, th, li, h1, h2')].filter(e => e.checkVisibility()), of = e => (e.getAttribute('aria-label') ?? e.innerText).trim(); const e = all.find(e => of(e) === name) ?? all.find(e => of(e).startsWith(name)); return e?.control ?? e })(%q)`

func (w walker) step(verb, rest string) (string, error) {
	ctx, cancel := context.WithTimeout(w.tab, bound)
	defer cancel()
	switch verb {
	case "open":
		if strings.HasPrefix(rest, "/") {
			rest = w.base.Scheme + "://" + w.base.Host + rest
		}
		return "", browser.Visit(ctx, rest)
	case "click":
		return "", w.until(ctx, "there is no "+rest, "(e => e && !e.disabled && (e.focus(), e.click(), true))("+named+")", rest)
	case "fill":
		label, text, _ := strings.Cut(rest, " = ")
		if err := w.until(ctx, "there is no "+label, "(e => e && (e.focus(), e.select?.(), true))("+named+")", label); err != nil {
			return "", err
		}
		return "", browser.Type(ctx, text)
	case "type":
		return "", browser.Type(ctx, rest)
	case "press":
		return "", browser.Press(ctx, rest)
	case "wait":
		return "", w.until(ctx, "the page does not say "+rest, "document.body.innerText.includes(%q)", rest)
	case "size":
		var width, height int
		if _, err := fmt.Sscan(rest, &width, &height); err != nil {
			return "", fmt.Errorf("size WIDTH HEIGHT, not %q", rest)
		}
		return "", browser.Size(ctx, width, height)
	case "shot":
		png, err := browser.Picture(ctx)
		if err != nil {
			return "", err
		}
		return rest, os.WriteFile(rest, png, 0o600)
	case "text":
		return browser.Await[string](ctx, "location.href + '\\n' + document.title + '\\n\\n' + document.body.innerText")
	case "focus":
		return browser.Await[string](ctx, "(e => e.tagName.toLowerCase() + ' ' + (e.getAttribute('aria-label') ?? e.innerText ?? '').slice(0, 200))(document.activeElement)")
	case "js":
		return browser.Await[string](ctx, "(async () => String(await ("+rest+")))()")
	}
	return "", fmt.Errorf("there is no step %q", verb)
}

// until waits for an expression to be true in the page.
func (w walker) until(ctx context.Context, otherwise, format string, args ...any) error {
	for {
		ok, err := browser.Await[bool](ctx, fmt.Sprintf("!!("+format+")", args...))
		if ctx.Err() != nil {
			return fmt.Errorf("%s, within %v", otherwise, bound)
		}
		if err != nil || ok {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

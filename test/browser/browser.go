// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// startBound is how long the browser may take to say where it listens: far more than it does.
const startBound = 2 * time.Minute

// Open starts the browser with a profile of its own in dir, which is empty, and returns a context whose chromedp.Run acts in
// a tab; hear, if it is not nil, gets the tab's events,
// those of its network and of its log too. Done ends the browser and all that it started.
func (p Program) Open(ctx context.Context, dir string, hear func(event any)) (tab context.Context, done func(), err error) {
	o := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(p.path()), chromedp.Env(p.environ()...), chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(startBound),
		chromedp.Flag("no-proxy-server", true), // pages are of this machine
		chromedp.DisableGPU,
	)
	for name, value := range p.Flags {
		o = append(o, chromedp.Flag(name, value))
	}
	if os.Getuid() == 0 {
		o = append(o, chromedp.NoSandbox) // its sandbox refuses root
	}
	all, end := chromedp.NewExecAllocator(ctx, o...)
	tab, closeTab := chromedp.NewContext(all)
	done = func() {
		closeTab()
		end()
	}
	if err = begin(tab, hear); err != nil {
		done()
		return nil, nil, err
	}
	return tab, done, nil
}

// Another opens another tab of the browser that a tab is of, which shares its cookies. Done closes it.
func Another(of context.Context, hear func(event any)) (tab context.Context, done func(), err error) {
	tab, done = chromedp.NewContext(of)
	if err = begin(tab, hear); err != nil {
		done()
		return nil, nil, err
	}
	return tab, done, nil
}

// Apart opens a window of the browser that a tab is of, with cookies and connections of its own, as of another person's browser.
// Done closes it.
func Apart(of context.Context, hear func(event any)) (tab context.Context, done func(), err error) {
	tab, done = chromedp.NewContext(of, chromedp.WithNewBrowserContext())
	if err = begin(tab, hear); err != nil {
		done()
		return nil, nil, err
	}
	return tab, done, nil
}

// begin has hear get a tab's events, and opens an empty page in it.
func begin(tab context.Context, hear func(event any)) error {
	if hear != nil {
		if err := chromedp.Listen(tab, hear); err != nil {
			return err
		}
		if _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		if _, err := chromedp.Call(tab, log.Enable, cdp.Empty{}); err != nil {
			return err
		}
	}
	return chromedp.Do(tab, chromedp.Navigate("about:blank"))
}

// Visit opens an address in a tab, and returns when it has loaded.
func Visit(tab context.Context, address string) error {
	return chromedp.Do(tab, chromedp.Navigate(address))
}

// Await evaluates an expression in a tab's page, waits for its promise and returns its value, as JSON has it.
func Await[T any](tab context.Context, expression string) (T, error) {
	return chromedp.Run(tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Type presses the keys of a text in a tab, where the focus is.
func Type(tab context.Context, text string) error {
	for _, r := range text {
		key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: string(r)}
		if r == '\r' {
			key.Key, key.Code, key.WindowsVirtualKeyCode = "Enter", "Enter", 13
		}
		char, up := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeChar, Key: key.Key, Text: string(r)}, key
		up.Type = input.DispatchKeyEventTypeKeyUp
		for _, e := range []input.DispatchKeyEventParams{key, char, up} {
			if _, err := chromedp.Call(tab, input.DispatchKeyEvent, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Press presses keys that are no text, such as "Tab", "Shift+Tab", "Control+k" or "Control+Shift+Escape".
func Press(tab context.Context, keys string) error {
	names := strings.Split(keys, "+")
	var modifiers chromedp.Modifier
	for _, name := range names[:len(names)-1] {
		m, ok := map[string]chromedp.Modifier{"Alt": chromedp.ModifierAlt, "Control": chromedp.ModifierCtrl, "Meta": chromedp.ModifierMeta, "Shift": chromedp.ModifierShift}[name]
		if !ok {
			return fmt.Errorf("%q is no modifier: Alt, Control, Meta or Shift is", name)
		}
		modifiers |= m
	}
	last := names[len(names)-1]
	for key, code := range map[string]string{
		"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Backspace": kb.Backspace, "Delete": kb.Delete, "Space": " ", "Home": kb.Home, "End": kb.End,
		"ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "PageDown": kb.PageDown, "PageUp": kb.PageUp,
	} {
		if key == last {
			return chromedp.Do(tab, chromedp.KeyEvent(code, chromedp.KeyModifiers(modifiers)))
		}
	}
	if utf8.RuneCountInString(last) != 1 {
		return fmt.Errorf("%q is no key", last)
	}
	return chromedp.Do(tab, chromedp.KeyEvent(last, chromedp.KeyModifiers(modifiers)))
}

// Size has a tab be so many pixels wide and high; 0 and 0: as it was.
func Size(tab context.Context, width, height int) error {
	if width == 0 && height == 0 {
		_, err := chromedp.Call(tab, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
		return err
	}
	_, err := chromedp.Call(tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: int64(height), DeviceScaleFactor: 1})
	return err
}

// Picture returns what a tab shows, as PNG.
func Picture(tab context.Context) ([]byte, error) {
	return chromedp.Run(tab, chromedp.CaptureScreenshot())
}

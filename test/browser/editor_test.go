// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// sized gives the page of a person a window of a size, in pixels.
func (p *person) sized(width, height int64) {
	p.t.Helper()
	if _, err := chromedp.Call(p.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1}); err != nil {
		p.t.Fatal(err)
	}
}

// signedIn opens the console, as who has the server's first token.
func signedIn(t *testing.T, s *server) *person {
	t.Helper()
	one := visit(t, needBrowser(t), strings.TrimSpace(s.do(t, "console", "--print")))
	one.until("somebody is signed in", "document.querySelector('header .who')")
	return one
}

// TestASandboxInTheConsole looks at the parts of the page of one sandbox that change it: plots, files, snapshots.
func TestASandboxInTheConsole(t *testing.T) {
	needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "shop")
	one := signedIn(t, s)
	one.sized(1280, 900)
	one.presses("shop")

	t.Run("ItsUseIsPlotted", func(t *testing.T) {
		one.t = t
		one.until("four plots are drawn", "document.querySelectorAll('.plot canvas').length === 4")
		s.do(t, "exec", "shop", "--", "sh", "-c", "head -c 30000000 /dev/urandom > big; sync")
		one.until("the disk's plot has the new file", "Number(/([0-9.]+) MiB/.exec([...document.querySelectorAll('.plot [role=img]')].find(e => e.ariaLabel.startsWith('Disk')).ariaLabel.replace(/.*now/, ''))?.[1]) > 28")
		// What is drawn is there: a line in its color, and not an empty canvas.
		one.until("a line is drawn", `(() => { const c = [...document.querySelectorAll('.plot')].find(p => p.innerText.startsWith('Disk')).querySelector('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, of = getComputedStyle(c).getPropertyValue('--c6').trim().match(/\w\w/g).map(h => parseInt(h, 16)); for (let i = 0; i < d.length; i += 4) if (d[i] === of[0] && d[i + 1] === of[1] && d[i + 2] === of[2] && d[i + 3] === 255) return true; return false })()`)
		one.presses("The same as a table")
		one.until("the table has it", "[...document.querySelectorAll('details table.list td')].some(d => /^(2[89]|3[0-9])[.0-9]* MiB$/.test(d.innerText))")
		await[bool](t, one.tab, "document.querySelector('.plots').scrollIntoView() === undefined")
		one.picture("plots")
		before := s.lastUsed(t, "shop")
		time.Sleep(5 * time.Second) // in which the page reads twice
		if now := s.lastUsed(t, "shop"); now != before {
			t.Errorf("the sandbox was used at %s and, though nobody did anything, at %s", before, now)
		}
		s.do(t, "exec", "shop", "--", "rm", "big")
	})
	t.Run("NothingWasRefusedByItsPolicy", func(t *testing.T) {
		for _, c := range one.take() {
			t.Errorf("the browser says: %s", c)
		}
	})
}

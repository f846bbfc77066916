// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	pages "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

// sized gives the page of a person a window of a size, in pixels.
func (p *person) sized(width, height int64) {
	p.t.Helper()
	if _, err := chromedp.Call(p.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1}); err != nil {
		p.t.Fatal(err)
	}
}

// chord presses a key while Ctrl is held.
func (p *person) chord(key, code string, number int64) {
	p.t.Helper()
	e := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: 2, Key: key, Code: code, WindowsVirtualKeyCode: number}
	up := e
	up.Type = input.DispatchKeyEventTypeKeyUp
	for _, e := range []input.DispatchKeyEventParams{e, up} {
		if _, err := chromedp.Call(p.tab, input.DispatchKeyEvent, e); err != nil {
			p.t.Fatal(err)
		}
	}
}

// types presses the keys of a text, at the end of what the editor has.
func (p *person) types(text string) {
	p.t.Helper()
	p.until("the editor is there", "document.querySelector('.cm-content[contenteditable=true]')")
	await[bool](p.t, p.tab, "document.querySelector('.cm-content').focus() === undefined")
	p.chord("End", "End", 35)
	if err := browser.Type(p.tab, text); err != nil {
		p.t.Fatal(err)
	}
}

// opens shows a file that the tree has.
func (p *person) opens(name string) {
	p.t.Helper()
	p.until("the tree has "+name, "[...document.querySelectorAll('.tree button')].some(b => b.innerText.trim() === %q && (b.click(), true))", name)
}

// asked are the questions that pages asked by a dialog of the browser's.
type asked struct {
	mu    sync.Mutex
	yes   bool // the answer
	words []string
}

func (a *asked) answer(yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.yes, a.words = yes, nil
}

func (a *asked) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.words, "; ")
}

// questions answers those of a person's page, first with no.
func (p *person) questions() *asked {
	a, t := new(asked), p.t
	err := chromedp.Listen(p.tab, func(event any) {
		e, ok := event.(*pages.EventJavascriptDialogOpening)
		if !ok {
			return
		}
		a.mu.Lock()
		a.words = append(a.words, string(e.Type)+" "+e.Message)
		yes := a.yes
		a.mu.Unlock()
		go func() { // it ends with the tab
			if _, err := chromedp.Call(p.tab, pages.HandleJavaScriptDialog, pages.HandleJavaScriptDialogParams{Accept: yes}); err != nil {
				t.Errorf("answer %q: %v", e.Message, err)
			}
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signedIn opens the console, as who has the server's first token.
func signedIn(t *testing.T, s *server) *person {
	t.Helper()
	one := visit(t, needBrowser(t), strings.TrimSpace(s.do(t, "console", "--print")))
	one.until("somebody is signed in", "document.querySelector('header .who')")
	one.take() // nobody was, which is asked first
	return one
}

// TestASandboxInTheConsole looks at the parts of the page of one sandbox that change it: plots, files, snapshots.
func TestASandboxInTheConsole(t *testing.T) {
	needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "shop")
	one, whole := signedIn(t, s), t
	one.sized(1280, 900)
	one.presses("shop")

	t.Run("ItsUseIsPlotted", func(t *testing.T) {
		one.t = t
		one.until("six plots are drawn", "document.querySelectorAll('.plot canvas').length === 6")
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
	t.Run("AFileIsEdited", func(t *testing.T) {
		one.t = t
		asks := one.questions()
		s.do(t, "exec", "shop", "--", "sh", "-c", `printf 'def f():\n    return "one"\n' > notes.py; printf 'a\r\nb\r\n' > dos.txt; printf 'a\r\nb\n' > both.txt`)
		one.presses("Files")
		one.opens("notes.py")
		one.until("it is shown with colors", "[...document.querySelectorAll('.cm-line span')].some(e => e.textContent === 'def' && getComputedStyle(e).color !== getComputedStyle(document.body).color)")
		one.picture("editor")
		await[bool](t, one.tab, "(document.documentElement.dataset.theme = 'dark') !== ''")
		one.picture("editor-dark")
		await[bool](t, one.tab, "(document.documentElement.dataset.theme = 'auto') !== ''")
		one.types("# typed")
		one.reads("Not saved yet.")
		one.chord("s", "KeyS", 83)
		one.reads("Saved.")
		if got := s.do(t, "exec", "shop", "--", "cat", "notes.py"); got != "def f():\n    return \"one\"\n# typed" {
			t.Errorf("the sandbox has %q", got)
		}
		one.types("; more")
		at := await[string](t, one.tab, "location.href")
		one.looksOver() // no: it stays
		if got := asks.last(); !strings.Contains(got, "notes.py has changes that are not saved") || await[string](t, one.tab, "location.href") != at {
			t.Errorf("asked was %q", got)
		}
		await[bool](t, one.tab, "history.back() === undefined")
		one.until("it is where it was", "location.href === %q", at)
		one.until("the changes are there", "document.querySelector('.cm-content').innerText.includes('; more')")
		await[bool](t, one.tab, "dispatchEvent(new Event('beforeunload', {cancelable: true})) === false")
		asks.answer(true)
		one.looksOver()
		one.until("it is left", "!location.href.endsWith(%q)", "notes.py")
		one.presses("Files")
		one.opens("notes.py")
		one.until("what was dropped is gone", "document.querySelector('.cm-content')?.innerText.includes('# typed') && !document.querySelector('.cm-content').innerText.includes('; more')")
		// Lines keep their ends.
		for file, want := range map[string]string{"dos.txt": "a\r\nb\r\nc", "both.txt": "a\r\nb\nc"} {
			one.opens(file)
			one.until("it is shown", "document.querySelector('.cm-content')?.ariaLabel.endsWith(%q)", file)
			one.types("c")
			one.chord("s", "KeyS", 83)
			one.reads("Saved.")
			if got := s.do(t, "exec", "shop", "--", "cat", file); got != want {
				t.Errorf("%s has %q", file, got)
			}
		}
	})
	t.Run("WhatIsNotSavedOutlivesTheServer", func(t *testing.T) {
		one.t = t
		one.opens("notes.py")
		one.until("it is shown", "document.querySelector('.cm-content')?.ariaLabel.endsWith('notes.py')")
		one.types("; kept")
		s.kill(t)
		one.reads("The server has not answered for")
		one.chord("s", "KeyS", 83)
		one.reads("Not saved.")
		s.again(whole)
		one.until("it is back", "!document.body.innerText.includes('The server has not answered for')")
		one.chord("s", "KeyS", 83)
		one.reads("Saved.")
		if got := s.do(t, "exec", "shop", "--", "cat", "notes.py"); !strings.HasSuffix(got, "; kept") {
			t.Errorf("the sandbox has %q", got)
		}
		one.types("; session")
		s.do(t, append([]string{"session", "rm"}, strings.Fields(s.do(t, "session", "ls", "-q"))...)...)
		one.reads("No token at hand?")
		one.fills("Token", s.token)
		one.presses("Sign in")
		one.reads("Your changes of before are here")
		one.chord("s", "KeyS", 83)
		one.until("it can be typed into", "document.querySelector('.cm-content')?.innerText.includes('; session')")
		one.types(";")
		one.chord("s", "KeyS", 83)
		one.reads("Saved.")
		if got := s.do(t, "exec", "shop", "--", "cat", "notes.py"); !strings.HasSuffix(got, "; session;") {
			t.Errorf("the sandbox has %q", got)
		}
		one.take() // the browser tells of what was refused meanwhile
	})
	t.Run("AConflictLosesNeitherSide", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "shop", "--", "sh", "-c", `seq 1 20 > both.md`)
		one.opens("both.md")
		one.until("it is shown", "document.querySelector('.cm-content')?.innerText.startsWith('1\\n2')")
		clash := func(theirs string) {
			t.Helper()
			one.types("mine ")
			s.do(t, "exec", "shop", "--", "sh", "-c", theirs)
			one.chord("s", "KeyS", 83)
			one.until("a conflict is shown", "document.querySelector('section[aria-label=Conflict]')")
		}
		clash(`sed -i 's/^7$/theirs/' both.md`)
		one.until("both sides are shown", "[...document.querySelectorAll('.sides ins')].some(e => e.innerText.trim() === 'mine') && [...document.querySelectorAll('.sides del')].some(e => e.innerText === 'theirs') && document.querySelector('.sides .skipped')")
		one.picture("conflict")
		if got := s.do(t, "exec", "shop", "--", "tail", "-1", "both.md"); got != "20\n" {
			t.Errorf("the sandbox has %q", got)
		}
		one.presses("Save mine under another name…")
		one.fills("Path", "/workspace/notes.py")
		one.until("it is asked", "[...document.querySelectorAll('dialog[open] button')].some(b => b.innerText === 'Save' && (b.click(), true))")
		one.reads("exists already")
		one.fills("Path", "/workspace/mine.md")
		await[bool](t, one.tab, "[...document.querySelectorAll('dialog[open] button')].some(b => b.innerText === 'Save' && (b.click(), true))")
		one.until("the other one is shown", "document.querySelector('.cm-content')?.ariaLabel.endsWith('mine.md')")
		if got := s.do(t, "exec", "shop", "--", "sh", "-c", "sed -n 7p both.md; tail -1 mine.md"); got != "theirs\nmine " {
			t.Errorf("the sandbox has %q", got)
		}
		one.opens("both.md")
		one.until("it is shown", "document.querySelector('.cm-content')?.innerText.includes('theirs')")
		clash(`sed -i 's/^8$/eight/' both.md`)
		one.presses("Take the file's, lose mine")
		one.until("the file's is shown", "document.querySelector('.cm-content').innerText.includes('eight') && !document.querySelector('.cm-content').innerText.includes('mine')")
		clash(`sed -i 's/^9$/nine/' both.md`)
		one.presses("Overwrite it with mine")
		one.reads("Saved.")
		if got := s.do(t, "exec", "shop", "--", "sh", "-c", "sed -n 9p both.md; tail -1 both.md"); got != "9\nmine " {
			t.Errorf("the sandbox has %q", got)
		}
		clash(`rm both.md`)
		one.reads("The file was deleted meanwhile")
		one.presses("Make it anew with mine")
		one.reads("Saved.")
		if got := s.do(t, "exec", "shop", "--", "tail", "-1", "both.md"); got != "mine mine " {
			t.Errorf("the sandbox has %q", got)
		}
		one.take() // the browser tells of what was refused meanwhile
	})
	t.Run("LongFilesAndBytesAreShownInParts", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "shop", "--", "sh", "-c", `seq -f 'line %.0f é' 1 200000 > long.log; printf 'ab\0cd\377' > raw.bin; printf 'caf\351\n' > latin.txt`)
		one.opens("long.log")
		one.reads("Bytes 0 to 65536 of ")
		one.presses("Last")
		one.until("its end is shown", "document.querySelector('pre[aria-label=Contents]').innerText.includes('line 200000 é')")
		one.picture("window")
		one.opens("raw.bin")
		one.until("its bytes are shown", "document.querySelector('pre[aria-label=Contents]')?.innerText.startsWith('00000000  61 62 00 63 64 ff')")
		one.opens("latin.txt")
		one.until("its bytes are shown", "document.querySelector('pre[aria-label=Contents]')?.innerText.startsWith('00000000  63 61 66 e9 0a')")
	})
	t.Run("TheTreeFollowsWhatHappens", func(t *testing.T) {
		one.t = t
		one.reads("Changes show as they happen.")
		s.do(t, "exec", "shop", "--", "sh", "-c", "mkdir -p dir/sub && echo one > dir/one.txt && echo live > live.txt")
		one.until("the new ones are in the tree", "['dir/', 'live.txt'].every(n => [...document.querySelectorAll('.tree button')].some(b => b.innerText.replace(/^. /, '').trim() === n))")
		one.opens("▸ dir/")
		one.until("it is open", "[...document.querySelectorAll('.tree .tree button')].some(b => b.innerText.trim() === 'one.txt')")
		s.do(t, "exec", "shop", "--", "sh", "-c", "mv dir/one.txt dir/two.txt; rm live.txt")
		one.until("the tree has followed", "[...document.querySelectorAll('.tree .tree button')].some(b => b.innerText.trim() === 'two.txt') && !document.querySelector('.tree').innerText.includes('live.txt') && !document.querySelector('.tree').innerText.includes('one.txt')")
		one.opens("two.txt")
		one.until("the file is shown", "document.querySelector('.cm-content')?.innerText.trim() === 'one'")
		s.do(t, "exec", "shop", "--", "sh", "-c", "echo changed > dir/two.txt")
		one.until("the file follows", "document.querySelector('.cm-content')?.innerText.trim() === 'changed'")
		one.picture("live")
	})
	t.Run("DirectoriesAreMadeRenamedAndDeleted", func(t *testing.T) {
		one.t = t
		one.presses("New, download…")
		one.fills("New file or directory in it", "made")
		one.presses("Make the directory")
		one.until("it is in the tree", "document.querySelector('button[aria-label=\"What to do with made\"]')")
		await[bool](t, one.tab, "document.querySelector('button[aria-label=\"What to do with made\"]').click() === undefined")
		one.fills("New file or directory in it", "<b>file\u202e.txt")
		one.picture("deeds")
		one.presses("Make the file")
		one.until("it is opened", "document.querySelector('.cm-content')?.ariaLabel.includes('⟨202e⟩')")
		one.types("text")
		one.chord("s", "KeyS", 83)
		one.reads("Saved.")
		await[bool](t, one.tab, "document.querySelector('button[aria-label=\"What to do with made\"]').click() === undefined")
		one.fills("New path", "/workspace/renamed")
		one.presses("Rename the directory")
		one.until("the file is shown where it is now", "document.querySelector('.cm-content')?.ariaLabel.includes('/renamed/')")
		one.until("it is renamed", "document.querySelector('button[aria-label=\"What to do with renamed\"]') && !document.querySelector('button[aria-label=\"What to do with made\"]')")
		if got := s.do(t, "exec", "shop", "--", "sh", "-c", "cat renamed/*"); got != "text" {
			t.Errorf("the sandbox has %q", got)
		}
		await[bool](t, one.tab, "document.querySelector('button[aria-label=\"What to do with renamed\"]').click() === undefined")
		one.presses("Delete the directory…")
		one.reads("1 file and 0 directories in it, 4 B, are lost, unless a snapshot has them.")
		one.presses("Delete all of it")
		one.until("it is gone", "!document.querySelector('button[aria-label=\"What to do with renamed\"]')")
		if got := s.do(t, "exec", "shop", "--", "sh", "-c", "ls -d renamed made 2>&1 || true"); strings.Count(got, "No such file") != 2 {
			t.Errorf("the sandbox has %q", got)
		}
	})
	t.Run("ADirectoryIsDownloaded", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "shop", "--", "sh", "-c", "mkdir -p tree/sub; head -c 3000000 /dev/urandom > tree/sub/random; echo text > tree/text")
		sum := strings.Fields(s.do(t, "exec", "shop", "--", "sha256sum", "tree/sub/random"))[0]
		dir := t.TempDir()
		if _, err := chromedp.CallBrowser(one.tab, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir}); err != nil {
			t.Fatal(err)
		}
		check := func(packed []byte) {
			t.Helper()
			z, err := gzip.NewReader(bytes.NewReader(packed))
			if err != nil {
				t.Fatal(err)
			}
			found := make(map[string]string)
			for r := tar.NewReader(z); ; {
				h, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				found[path.Base(h.Name)] = fmt.Sprintf("%x", sha256.Sum256(text))
			}
			if found["random"] != sum || found["text"] != fmt.Sprintf("%x", sha256.Sum256([]byte("text\n"))) {
				t.Errorf("the archive has %v, want %s", found, sum)
			}
		}
		begin := func() {
			t.Helper()
			one.until("the tree has it", "document.querySelector('button[aria-label=\"What to do with tree\"]')")
			await[bool](t, one.tab, "document.querySelector('button[aria-label=\"What to do with tree\"]').click() === undefined")
			one.presses("Download all of it (.tar.gz)")
		}
		// Where the browser has somebody choose a file: here one of its own that nobody need choose.
		await[bool](t, one.tab, "(window.showSaveFilePicker = async o => (await navigator.storage.getDirectory()).getFileHandle(o.suggestedName, {create: true})) !== null")
		begin()
		one.reads("tree.tar.gz downloaded, ")
		text := await[string](t, one.tab, "navigator.storage.getDirectory().then(d => d.getFileHandle('tree.tar.gz')).then(h => h.getFile()).then(f => f.arrayBuffer()).then(b => { let s = ''; for (const x of new Uint8Array(b)) s += String.fromCharCode(x); return btoa(s) })")
		packed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		check(packed)
		// And where it does not.
		await[bool](t, one.tab, "delete window.showSaveFilePicker")
		await[bool](t, one.tab, "(window.showSaveFilePicker = undefined) === undefined")
		begin()
		one.until("both are listed", "document.body.innerText.split('tree.tar.gz downloaded, ').length === 3")
		for deadline := time.Now().Add(bound); ; time.Sleep(50 * time.Millisecond) {
			if packed, err = os.ReadFile(filepath.Join(dir, "tree.tar.gz")); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		check(packed)
		one.picture("downloads")
	})
	t.Run("AnUploadIsCanceled", func(t *testing.T) {
		one.t = t
		const choose = `(i => { const d = new DataTransfer(); d.items.add(new File([new Uint8Array(200 * 1000 * 1000).fill(65)], 'big.bin')); i.files = d.files; return i.dispatchEvent(new Event('change')) })(document.querySelector('input[type=file]'))`
		await[bool](t, one.tab, choose)
		if got := await[int](t, one.tab, `new Promise(done => { const look = () => { const p = document.querySelector('progress[aria-label="Upload of big.bin"]'); if (p && p.value > 0) { const at = p.value; p.parentElement.querySelector('button').click(); done(at) } else setTimeout(look, 1) }; look() })`); got >= 200*1000*1000 {
			t.Fatalf("it was canceled when %d bytes were sent", got)
		}
		one.reads("It was canceled.")
		one.picture("canceled")
		for deadline := time.Now().Add(bound); ; time.Sleep(50 * time.Millisecond) {
			got := s.do(t, "exec", "shop", "--", "sh", "-c", "find / -xdev -size +20M -not -path '/proc/*' -not -path '/sys/*' 2>/dev/null | grep -v ^/usr; du -sm /workspace | cut -f1; ls -A /workspace | grep -c big || true")
			if f := strings.Fields(got); len(f) == 2 && len(f[0]) <= 2 && f[1] == "0" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the sandbox keeps of it: %q", got)
			}
		}
		await[bool](t, one.tab, choose)
		one.reads("uploaded, 191 MiB")
		if got := s.do(t, "exec", "shop", "--", "sh", "-c", "stat -c %s big.bin; tr -d A < big.bin | wc -c; rm big.bin"); got != "200000000\n0\n" {
			t.Errorf("the sandbox has %q", got)
		}
	})
	t.Run("NothingWasRefusedByItsPolicy", func(t *testing.T) {
		for _, c := range one.take() {
			if strings.Contains(c, "status of 404") && strings.Contains(c, "files?path=%2Fworkspace%2Frenamed&") {
				continue // a look at a directory that has just been deleted
			}
			t.Errorf("the browser says: %s", c)
		}
	})
}

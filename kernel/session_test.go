// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

// hostile starts a "kernel" that is a shell script: it is given the token as $T, and the
// functions m (a message on stdout) and e (one on stderr).
func hostile(t *testing.T, script string) (*kernel.Session, error) {
	t.Helper()
	p := launchHere(t, []string{"bash", "-c", `read -r size T; head -c "$size" >/dev/null
m() { printf '\037%s:.%04x%s' "$T" "${#1}" "$1"; }
e() { m "$1" >&2; }
run() { read -r size; head -c "$size" >/dev/null; }
` + script})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return kernel.Start(ctx, kernel.Python, p, kernel.Options{MaxStdout: 32 << 20, MaxStderr: 1 << 20})
}

const ready = `m '{"t":"ready","version":"3.11"}'; e '{"t":"sync","id":0}'; `

func TestAMissingProgramIsUnsupported(t *testing.T) {
	t.Parallel()
	for _, l := range kernel.Languages() {
		p := launchHere(t, []string{"/bin/sh", "-c", `exec no-such-program "$@"`, "sh", kernel.Command(l)[0]})
		_, err := kernel.Start(t.Context(), l, p, kernel.Options{})
		if !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy == "" {
			t.Errorf("%s: %v", l, err)
		}
	}
	if _, err := kernel.Start(t.Context(), "cobol", nil, kernel.Options{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("cobol: %v", err)
	}
}

func TestAKernelThatNeverGetsReady(t *testing.T) {
	t.Parallel()
	if _, err := hostile(t, `echo "Traceback: no module" >&2; exit 1`); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "no module") {
		t.Errorf("it ended: %v", err)
	}
	if _, err := hostile(t, `m '{"t":"refuse","reason":"x","version":"\u0007<b>"}'`); !fault.Is(err, fault.Unsupported) {
		t.Errorf("it refused: %v", err)
	}
	if _, err := hostile(t, `m 'no json'; sleep 100`); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it spoke nonsense: %v", err)
	}
	p := launchHere(t, []string{"sleep", "100"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := kernel.Start(ctx, kernel.Python, p, kernel.Options{}); !fault.Is(err, fault.Timeout) {
		t.Errorf("it slept: %v", err)
	}
}

func TestAHostileKernelHarmsOnlyItself(t *testing.T) {
	t.Parallel()
	const start = `run; m '{"t":"start","id":1,"count":1}'; `
	const end = ` e '{"t":"sync","id":1}'; m '{"t":"end","id":1,"status":"ok"}'; sleep 100`
	big := strings.Repeat("x", 4000)
	for name, c := range map[string]struct {
		script string
		code   fault.Code // "": the cell ends well
		check  func(kernel.Outcome) error
	}{
		"a message that is not JSON":  {start + `m '{'; sleep 100`, fault.Unavailable, nil},
		"a message of another form":   {start + `m '{"t":5}'; sleep 100`, fault.Unavailable, nil},
		"a chunk that is too long":    {start + `printf '\037%s:.ffff' "$T"; sleep 100`, fault.Unavailable, nil},
		"a message without end":       {start + `while :; do printf '\037%s:+0fa0%s' "$T" ` + big + `; done`, fault.Unavailable, nil},
		"output without end":          {start + `yes`, fault.Exhausted, nil},
		"errors without end":          {start + `yes >&2`, fault.Exhausted, nil},
		"it dies":                     {start + `exit 3`, "", func(o kernel.Outcome) error { return is(o.End == kernel.Ended && o.Exit.Code == 3) }},
		"it dies before the cell":     {`read -r size; exit 3`, fault.State, nil},
		"messages of other cells":     {start + `m '{"t":"end","id":7}'; e '{"t":"sync","id":7}'; m '{"t":"result","id":0,"data":{"text/plain":"x"}}'; m '{"t":"pong","id":99}'; m '{"t":"ready"}'; m '{"t":"nonsense"}';` + end, "", func(o kernel.Outcome) error { return is(len(o.Results) == 0) }},
		"an end of an unknown status": {start + `e '{"t":"sync","id":1}'; m '{"t":"end","id":1,"status":"great","exit":-9,"dropped":-5}'; sleep 100`, "", func(o kernel.Outcome) error { return is(o.End == kernel.OK && o.ExitCode == 0 && o.Dropped == 0) }},
		"results without end":         {start + `for ((i=0;i<300;i++)); do m '{"t":"result","id":1,"data":{"text/plain":"x"}}'; done;` + end, "", func(o kernel.Outcome) error { return is(len(o.Results) == kernel.MaxResults && o.Dropped == 200) }},
		"a picture that is none": {start + `m '{"t":"result","id":1,"data":{"image/png":"PHNjcmlwdD4=","text/html":["x"],"no mime":"x","../x":"y","application/json":"ok"}}';` + end, "", func(o kernel.Outcome) error {
			return is(o.Results[0].PNG == nil && o.Results[0].HTML == "" && len(o.Results[0].More) == 0 && len(o.Results[0].Omitted) == 4)
		}},
		"results after the end":              {start + `e '{"t":"sync","id":1}'; m '{"t":"end","id":1,"status":"ok"}'; m '{"t":"result","id":1,"data":{"text/plain":"x"}}'; sleep 100`, "", func(o kernel.Outcome) error { return is(len(o.Results) == 0) }},
		"an error that is nothing but blank": {start + `m '{"t":"error","id":1,"name":"\u001b[31m","value":"v","traceback":null}'; e '{"t":"sync","id":1}'; m '{"t":"end","id":1,"status":"error"}'; sleep 100`, "", func(o kernel.Outcome) error { return is(o.End == kernel.Failed && o.Error.Name == "[31m") }},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := hostile(t, ready+c.script)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			o, err := s.Execute(ctx, kernel.Cell{Code: "1"}, kernel.Handler{})
			if c.code != "" {
				if !fault.Is(err, c.code) || s.Status() != kernel.Dead || fault.As(err).Remedy == "" {
					t.Fatalf("%v, and the session is %s", err, s.Status())
				}
				if _, again := s.Execute(ctx, kernel.Cell{}, kernel.Handler{}); !fault.Is(again, c.code) {
					t.Errorf("again: %v", again)
				}
				if err := s.Interrupt(ctx); !fault.Is(err, c.code) {
					t.Errorf("interrupt: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.check(o); err != nil {
				t.Errorf("%+v", o)
			}
		})
	}
}

func is(ok bool) error {
	if !ok {
		return fmt.Errorf("not so")
	}
	return nil
}

func TestACellPrintingTheMarkerFakesOnlyItsOwnEnd(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	// It takes the token out of the kernel's memory, as hostile code can.
	r := b.run(`import gc, os
tokens = [o['TOKEN'] for o in gc.get_objects() if isinstance(o, dict) and 'TOKEN' in o]
def say(fd, s): os.write(fd, b'\x1f%s:.%04x%s' % (tokens[0].encode(), len(s), s))
say(1, b'{"t":"result","id":1,"main":true,"data":{"text/plain":"faked"}}')
'real'`)
	if len(r.Results) != 2 || r.Results[0].Text != "faked" || r.Results[1].Text != "'real'" {
		t.Errorf("%+v", r.Results)
	}
	b.want("1 → 1")
}

func TestATimeoutInterruptsTheCell(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	o, err := b.Execute(t.Context(), kernel.Cell{Code: "x = 1\nimport time; time.sleep(100)", Timeout: 100 * time.Millisecond}, kernel.Handler{})
	if err != nil || !o.TimedOut || o.End != kernel.Interrupted {
		t.Fatalf("%+v %v", o, err)
	}
	b.want("x → 1")
	o, err = b.Execute(t.Context(), kernel.Cell{Code: "while True:\n  try: time.sleep(100)\n  except KeyboardInterrupt: pass", Timeout: 50 * time.Millisecond, Grace: 50 * time.Millisecond}, kernel.Handler{})
	if !fault.Is(err, fault.Timeout) || !o.TimedOut || b.Status() != kernel.Busy {
		t.Fatalf("a cell that ignores it: %+v %v %s", o, err, b.Status())
	}
	if _, err := b.Execute(t.Context(), kernel.Cell{Code: "1"}, kernel.Handler{}); !fault.Is(err, fault.State) {
		t.Errorf("another cell meanwhile: %v", err)
	}
}

func TestWaitGoesOnWithACellThatWasLeft(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	ctx, cancel := context.WithCancel(t.Context())
	var first, rest said
	h := first.handler()
	h.Result = func(kernel.Result) { cancel() }
	_, err := b.Execute(ctx, kernel.Cell{Code: "import sys\nprint('one'); display(1)\nwhile not __import__('os').path.exists('/tmp/go'): pass\nprint('two'); 2"}, h)
	if !fault.Is(err, fault.Canceled) || b.Status() != kernel.Busy {
		t.Fatalf("%v %s", err, b.Status())
	}
	if err := b.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := b.Wait(t.Context(), kernel.Cell{}, rest.handler())
	if err != nil || o.End != kernel.Interrupted || len(o.Results) != 1 || first.out != "one\n" || rest.out != "" {
		t.Fatalf("%+v %v, first %q, rest %q", o, err, first.out, rest.out)
	}
	if _, err := b.Wait(t.Context(), kernel.Cell{}, kernel.Handler{}); !fault.Is(err, fault.State) {
		t.Errorf("with no cell: %v", err)
	}
	if err := b.Interrupt(t.Context()); !fault.Is(err, fault.State) {
		t.Errorf("interrupt with no cell: %v", err)
	}
	b.want("3 → 3")
}

// later is a transport to the same process that begins after a chunk.
type later struct {
	*process
	from int64
}

func (l *later) Next(ctx context.Context) (kernel.Chunk, error) {
	l.mu.Lock()
	for _, c := range l.all {
		if c.Seq > l.from {
			l.mu.Unlock()
			l.from = c.Seq
			return c, nil
		}
	}
	l.mu.Unlock()
	for {
		c, err := l.process.Next(ctx)
		if err != nil {
			return c, err
		}
		if c.Seq > l.from {
			l.from = c.Seq
			return c, nil
		}
	}
}

func TestResumeLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, l := range []kernel.Language{kernel.Python, kernel.JavaScript, kernel.Bash} {
		t.Run(string(l), func(t *testing.T) {
			b := open(t, l)
			show := map[kernel.Language]string{kernel.Python: "print(x)", kernel.JavaScript: "console.log(x)", kernel.Bash: "echo $x"}[l]
			b.run(map[kernel.Language]string{kernel.JavaScript: "let x=5"}[l] + map[bool]string{true: "x=5"}[l != kernel.JavaScript])
			resume := func() *box {
				t.Helper()
				text, err := json.Marshal(b.State())
				if err != nil {
					t.Fatal(err)
				}
				var st kernel.State
				if err := json.Unmarshal(text, &st); err != nil {
					t.Fatal(err)
				}
				s, err := kernel.Resume(st, &later{b.p, st.Cursor})
				if err != nil {
					t.Fatal(err)
				}
				return &box{s, t, b.p}
			}
			// Between cells.
			b = resume()
			if r := b.run(show); r.out != "5\n" {
				t.Errorf("between cells: %q", r.out)
			}
			// Within one: another follower begins with its first output.
			ctx, cancel := context.WithCancel(t.Context())
			var first, again said
			h := first.handler()
			h.Stdout = func(p []byte) { cancel() }
			code := map[kernel.Language]string{kernel.Python: "import time\nprint('GO')\nwhile True: time.sleep(1)", kernel.JavaScript: "console.log('GO'); while (true) {}", kernel.Bash: "echo GO; while :; do sleep 1; done"}[l]
			if _, err := b.Execute(ctx, kernel.Cell{Code: code}, h); !fault.Is(err, fault.Canceled) {
				t.Fatal(err)
			}
			b = resume()
			if b.Status() != kernel.Busy {
				t.Fatalf("it is %s", b.Status())
			}
			h = again.handler()
			plain := h.Stdout
			h.Stdout = func(p []byte) {
				if plain(p); again.out == "GO\n" {
					go func() { _ = b.Interrupt(t.Context()) }()
				}
			}
			wait, done := context.WithTimeout(t.Context(), 30*time.Second)
			defer done()
			o, err := b.Wait(wait, kernel.Cell{}, h)
			if err != nil || o.End != kernel.Interrupted || again.out != "GO\n" {
				t.Fatalf("%+v %v %q", o, err, again.out)
			}
			if r := b.run(show); r.out != "5\n" {
				t.Errorf("after it: %q", r.out)
			}
			// A cell that was meant and never sent.
			st := b.State()
			st.LastID++
			st.Running = true
			s, err := kernel.Resume(st, &later{b.p, st.Cursor})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Wait(wait, kernel.Cell{}, kernel.Handler{}); !fault.Is(err, fault.State) || s.Status() != kernel.Idle {
				t.Errorf("a cell that was never sent: %v %s", err, s.Status())
			}
			b = &box{s, t, b.p}
			if r := b.run(show); r.out != "5\n" {
				t.Errorf("at last: %q", r.out)
			}
		})
	}
	if _, err := kernel.Resume(kernel.State{Language: kernel.Bash, Token: "$(reboot)"}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a state that is none: %v", err)
	}
}

func TestCallersTakeTurns(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.run("order = []")
	var all sync.WaitGroup
	var mu sync.Mutex
	var counts []int
	for i := range 20 {
		all.Go(func() {
			var r said
			o, err := b.Execute(t.Context(), kernel.Cell{Code: fmt.Sprintf("order.append(%d); print(%d)", i, i)}, r.handler())
			if err != nil || r.out != fmt.Sprintln(i) {
				t.Errorf("%d: %q %v", i, r.out, err)
			}
			mu.Lock()
			counts = append(counts, o.Count)
			mu.Unlock()
		})
	}
	all.Wait()
	slices.Sort(counts)
	if want := 2; counts[0] != want || counts[19] != 21 {
		t.Errorf("the cells counted %v", counts)
	}
	b.want("len(order), len(set(order)) → (20, 20)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Execute(ctx, kernel.Cell{Code: "1"}, kernel.Handler{}); err != nil && !fault.Is(err, fault.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestCellsThatNoKernelCouldBeTold(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	for name, c := range map[string]struct {
		cell kernel.Cell
		code fault.Code
	}{
		"too long":       {kernel.Cell{Code: strings.Repeat("x", kernel.MaxCode+1)}, fault.TooLarge},
		"a NUL":          {kernel.Cell{Code: "a\x00b"}, fault.Invalid},
		"not UTF-8":      {kernel.Cell{Code: "\xff"}, fault.Invalid},
		"a variable":     {kernel.Cell{Env: map[string]string{"a;reboot": "1"}}, fault.Invalid},
		"a value":        {kernel.Cell{Env: map[string]string{"a": "\x00"}}, fault.Invalid},
		"a long value":   {kernel.Cell{Env: map[string]string{"a": strings.Repeat("x", kernel.MaxEnvBytes)}}, fault.Invalid},
		"a negative one": {kernel.Cell{Timeout: -1}, fault.Invalid},
	} {
		if _, err := b.Execute(t.Context(), c.cell, kernel.Handler{}); !fault.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := b.run("echo fine"); r.out != "fine\n" {
		t.Errorf("%q", r.out)
	}
}

func TestOutputBetweenCellsIsOfTheNext(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	b.run("mkfifo /tmp/f; (read x </tmp/f; echo late; echo late >&2; echo >/tmp/f) &")
	r := b.run("echo go >/tmp/f; cat /tmp/f")
	if r.out != "late\n\n" || r.err != "late\n" {
		t.Errorf("%q %q", r.out, r.err)
	}
}

func TestLanguagesHaveNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]kernel.Language{"Python": kernel.Python, "py": kernel.Python, "js": kernel.JavaScript, "ts": kernel.TypeScript, "sh": kernel.Bash, "bash": kernel.Bash} {
		if got, err := kernel.ParseLanguage(name); got != want || err != nil {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	for _, l := range kernel.Languages() {
		size := 0
		for _, a := range kernel.Command(l) {
			size += len(a)
		}
		if size == 0 || size > 4096 {
			t.Errorf("the command of %s has %d bytes", l, size)
		}
	}
}

// TestManyInterruptsLeaveTheContextWhole interrupts cells at their very begin and end.
func TestManyInterruptsLeaveTheContextWhole(t *testing.T) {
	for l, code := range map[kernel.Language]string{
		kernel.Python: "print('x'); n = 1; print('y')", kernel.JavaScript: "console.log('x'); await 0; console.log('y')", kernel.Bash: "echo x; :; echo y",
	} {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			b := open(t, l)
			for i := range 200 {
				var all sync.WaitGroup
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				h := kernel.Handler{
					Started: func(int) {
						if i%2 == 0 {
							all.Go(func() { _ = b.Interrupt(ctx) })
						}
					},
					Stdout: func([]byte) {
						if i%2 == 1 {
							all.Go(func() { _ = b.Interrupt(ctx) })
						}
					},
				}
				o, err := b.Execute(ctx, kernel.Cell{Code: code}, h)
				all.Wait()
				cancel()
				if err != nil || o.End == kernel.Ended {
					t.Fatalf("cell %d: %+v %v", i, o, err)
				}
			}
			b.run("")
		})
	}
}

func BenchmarkTrivialCell(bench *testing.B) {
	for l, code := range map[kernel.Language]string{kernel.Python: "1+1", kernel.JavaScript: "1+1", kernel.TypeScript: "1+1", kernel.Bash: ":"} {
		bench.Run(string(l), func(bench *testing.B) {
			b := open(bench, l)
			b.run(code)
			var all []time.Duration
			for bench.Loop() {
				began := time.Now()
				b.run(code)
				all = append(all, time.Since(began))
			}
			slices.Sort(all)
			bench.ReportMetric(float64(all[len(all)/2].Microseconds()), "us-p50")
			bench.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "us-p99")
		})
	}
}

func BenchmarkStart(bench *testing.B) {
	for _, l := range kernel.Languages() {
		bench.Run(string(l), func(bench *testing.B) {
			for bench.Loop() {
				open(bench, l).run("")
			}
		})
	}
}

func BenchmarkOutput(bench *testing.B) {
	b := open(bench, kernel.Bash)
	b.p.forget = true
	bench.SetBytes(64 << 20)
	for bench.Loop() {
		size := 0
		_, err := b.Execute(bench.Context(), kernel.Cell{Code: "head -c 67108864 /dev/zero"}, kernel.Handler{Stdout: func(p []byte) { size += len(p) }})
		if err != nil || size != 64<<20 {
			bench.Fatalf("%d bytes, %v", size, err)
		}
	}
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/kernel"
)

// pythonProgram lets the tests of Python run with another one, of this host.
var pythonProgram = flag.String("python", "", "run the cells of Python by this program of the host")

// bare makes tests use this host's programs where they would use the image's.
var bare = flag.Bool("bare", false, "run all cells by programs of this host")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a kernel as a plain process of this host.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  *os.File
	chunks chan kernel.Chunk
	exit   kernel.Exit // once chunks is closed
	done   chan struct{}
	all    []kernel.Chunk // every one that came, for a second follower
	mu     sync.Mutex
	seq    int64
	forget bool // keeps nothing: for benchmarks
}

// inImage is the script that runs a program in the image: its files, which other
// tests use too and nobody writes, with a /tmp that goes with it. Its mounts are in a
// namespace of their own.
const inImage = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" &&
exec chroot "$0" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 /bin/sh -c 'cd /tmp && exec "$@"' sh "$@"`

// launch runs argv in the image, or on this host where that cannot be.
func launch(t testing.TB, argv []string) *process {
	t.Helper()
	if len(argv) > 0 && argv[0] == "python3" && *pythonProgram != "" {
		argv = append([]string{*pythonProgram}, argv[1:]...)
	} else if os.Getuid() == 0 && !*bare {
		argv = append([]string{"unshare", "-m", "/bin/sh", "-c", inImage, imagetest.Python(t).Root}, argv...)
	}
	return launchHere(t, argv)
}

// launchHere runs argv on this host. The test ends it with all that it started.
func launchHere(t testing.TB, argv []string) *process {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = t.TempDir()
	var theirs, ours [3]*os.File
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		theirs[i], ours[i] = w, r
		if i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	p := &process{t: t, cmd: cmd, stdin: ours[0], chunks: make(chan kernel.Chunk, 1<<10), done: make(chan struct{})}
	var readers sync.WaitGroup
	for i := 1; i <= 2; i++ {
		readers.Go(func() { p.read(ours[i], i == 2) })
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
		readers.Wait()
		st := cmd.ProcessState.Sys().(syscall.WaitStatus)
		p.exit = kernel.Exit{Code: st.ExitStatus()}
		if st.Signaled() {
			p.exit = kernel.Exit{Code: 128 + int(st.Signal()), Signal: fmt.Sprint(int(st.Signal()))}
		}
		close(p.chunks)
	}()
	t.Cleanup(func() {
		_ = p.stdin.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
		_ = ours[1].Close()
		_ = ours[2].Close()
	})
	return p
}

func (p *process) read(f *os.File, stderr bool) {
	for {
		b := make([]byte, 32<<10)
		n, err := f.Read(b)
		if n > 0 {
			p.mu.Lock()
			p.seq++
			c := kernel.Chunk{Seq: p.seq, Stderr: stderr, Data: b[:n]}
			if !p.forget {
				p.all = append(p.all, c)
			}
			p.chunks <- c
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (p *process) Next(ctx context.Context) (kernel.Chunk, error) {
	select {
	case c, ok := <-p.chunks:
		if !ok {
			return kernel.Chunk{}, io.EOF
		}
		return c, nil
	case <-ctx.Done():
		return kernel.Chunk{}, ctx.Err()
	}
}

func (p *process) Write(ctx context.Context, b []byte) error {
	if d, ok := ctx.Deadline(); ok {
		_ = p.stdin.SetWriteDeadline(d)
		defer p.stdin.SetWriteDeadline(time.Time{})
	}
	_, err := p.stdin.Write(b)
	return err
}

func (p *process) Interrupt(context.Context) error {
	return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT)
}

func (p *process) Exit() kernel.Exit { <-p.done; return p.exit }

// box is a context under test.
type box struct {
	*kernel.Session
	t testing.TB
	p *process
}

// open starts a context of a language.
func open(t testing.TB, l kernel.Language) *box {
	t.Helper()
	return openBy(t, l, launch(t, kernel.Command(l)))
}

// openBy is open by a process that runs already.
func openBy(t testing.TB, l kernel.Language, p *process) *box {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := kernel.Start(ctx, l, p, kernel.Options{})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return &box{s, t, p}
}

// said is a cell's outcome and what it said.
type said struct {
	kernel.Outcome
	out, err string
}

func (b *box) cell(c kernel.Cell) said {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 60*time.Second)
	defer cancel()
	var r said
	o, err := b.Execute(ctx, c, r.handler())
	if err != nil {
		b.t.Fatalf("execute %.200q: %v (out %q, err %q)", c.Code, err, r.out, r.err)
	}
	r.Outcome = o
	return r
}

func (r *said) handler() kernel.Handler {
	return kernel.Handler{
		Stdout: func(p []byte) { r.out += string(p) },
		Stderr: func(p []byte) { r.err += string(p) },
	}
}

// run runs code that must end well.
func (b *box) run(code string) said {
	b.t.Helper()
	r := b.cell(kernel.Cell{Code: code})
	if r.End != kernel.OK {
		b.t.Fatalf("cell %.200q ended as %s: %+v\nout: %s\nerr: %s", code, r.End, r.Error, r.out, r.err)
	}
	return r
}

// fail runs code that must end by an error.
func (b *box) fail(code string) said {
	b.t.Helper()
	r := b.cell(kernel.Cell{Code: code})
	if r.End != kernel.Failed || r.Error == nil {
		b.t.Fatalf("cell %.200q ended as %s, not by an error; out %q, err %q", code, r.End, r.out, r.err)
	}
	return r
}

// value is the text of the last expression's value; empty: none.
func (r said) value() string {
	for _, res := range r.Results {
		if res.Main {
			return res.Text
		}
	}
	return ""
}

// want checks the value of each of some cells, in order: "code → value".
func (b *box) want(cells ...string) {
	b.t.Helper()
	for _, c := range cells {
		code, want, _ := strings.Cut(c, " → ")
		if got := b.run(code).value(); got != want {
			b.t.Errorf("%q has the value %q, want %q", code, got, want)
		}
	}
}

func (r said) trace() string { return strings.Join(r.Error.Traceback, "\n") }

// interrupt runs code that never ends, and interrupts it when it has printed GO,
// or at its very begin where GO is not in it.
func (b *box) interrupt(code string) said {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 60*time.Second)
	defer cancel()
	var r said
	h := r.handler()
	send := sync.OnceFunc(func() {
		go func() { // beside Execute, as another caller does it
			if err := b.Interrupt(ctx); err != nil {
				b.t.Errorf("interrupt: %v", err)
			}
		}()
	})
	if strings.Contains(code, "GO") {
		plain := h.Stdout
		h.Stdout = func(p []byte) {
			if plain(p); strings.Contains(r.out, "GO") {
				send()
			}
		}
	} else {
		h.Started = func(int) { send() }
	}
	o, err := b.Execute(ctx, kernel.Cell{Code: code}, h)
	if err != nil {
		b.t.Fatalf("execute %.200q: %v (out %q, err %q)", code, err, r.out, r.err)
	}
	r.Outcome = o
	return r
}

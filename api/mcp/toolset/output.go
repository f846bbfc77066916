// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Show shortens what was seen of both streams to a bound for both.
func (e *Outcome) Show(stdout, stderr *Capture, limit int) {
	oh, ot := stdout.Texts()
	eh, et := stderr.Texts()
	forOut, forErr := share(limit, Runes(oh)+Runes(ot), Runes(eh)+Runes(et))
	if stdout.Bytes > 0 || stderr.Bytes > 0 { // a stream with a gap takes what it gets
		forOut, forErr = share(limit, gapped(stdout, oh, ot), gapped(stderr, eh, et))
	}
	e.Stdout = Cut(oh, ot, stdout.Bytes, stdout.Lines, forOut)
	e.Stderr = Cut(eh, et, stderr.Bytes, stderr.Lines, forErr)
	e.seenOut, e.seenErr = stdout.seen(), stderr.seen()
}

// seen is how many bytes a stream had.
func (c *Capture) seen() int64 { return int64(len(c.head)+len(c.tail)) + c.Bytes }

// Where the whole output is kept, of which an answer shows a part.
const (
	logFolder = "/tmp/sandpit"
	maxLog    = 32 << 20 // bytes of one
	mostLogs  = 30
)

// Shortened says where the rest of an output is that was cut.
func (c *Call) Shortened(ctx context.Context, ref string, e *Outcome) []string {
	switch {
	case e.Whole():
		return nil
	case e.Running:
		return []string{fmt.Sprintf(`the output was shortened; for its end call read_process with {"sandbox": %s, "process": %s, "tail_lines": 200}`, Quote(ref), Quote(e.ProcessID))}
	}
	const more = "or raise max_output_chars"
	path, err := c.KeepLog(ctx, ref, e.ProcessID)
	if err != nil {
		return []string{"the output was shortened, and could not be kept in a file (" + Clip(fault.As(err).Message) + "); run the command again with > out.log 2>&1, " + more}
	}
	what := "all of it is"
	if e.StdoutBytes+e.StderrBytes > maxLog || e.StdoutTruncated || e.StderrTruncated {
		what = fmt.Sprintf("its first %d MiB are", maxLog>>20)
	}
	return []string{fmt.Sprintf("the output was shortened; %s in the file %s of the sandbox: use read_file or search_files, %s", what, path, more)}
}

// KeepLog writes the output of a process that has ended to a file in its sandbox, as
// the user of the sandbox, and gives its path. Whatever the sandbox's programs put
// at that path, it is theirs alone.
func (c *Call) KeepLog(ctx context.Context, ref, process string) (string, error) {
	if !c.Caller.May(access.SandboxesWrite) {
		return "", c.Caller.Require(access.SandboxesWrite)
	}
	g, err := c.Processes.Follow(ctx, c.Caller, ref, process, engine.FollowRequest{Once: true})
	if err != nil {
		return "", err
	}
	defer g.Close()
	from, to := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		left := int64(maxLog)
		_, err := g.Run(ctx, engine.FollowSink{Frame: func(f sandbox.Frame) error {
			p := f.Data[:min(left, int64(len(f.Data)))]
			left -= int64(len(p))
			if _, err := to.Write(p); err != nil {
				return err
			}
			if left == 0 {
				return io.EOF
			}
			return nil
		}})
		if left == 0 {
			err = nil
		}
		_ = to.CloseWithError(err) // nil: the end
	}()
	path := logFolder + "/" + process + ".log"
	_, _, err = c.Files.WriteFile(ctx, c.Caller, ref, path, from, sandbox.WriteFileOptions{MakeParents: true})
	_ = from.CloseWithError(io.ErrClosedPipe)
	<-read
	if err != nil {
		return "", err
	}
	c.pruneLogs(ctx, ref)
	return path, nil
}

// pruneLogs removes the oldest logs, so that they never fill the disk.
func (c *Call) pruneLogs(ctx context.Context, ref string) {
	files, _, err := c.Files.ListFiles(ctx, c.Caller, ref, logFolder, sandbox.ListFilesOptions{Limit: 1000})
	if err != nil || len(files) <= mostLogs {
		return
	}
	files = slices.DeleteFunc(files, func(f sandbox.FileInfo) bool {
		return f.Type != sandbox.RegularFile || !strings.HasSuffix(f.Name, ".log")
	})
	slices.SortFunc(files, func(a, b sandbox.FileInfo) int { return b.ModTime.Compare(a.ModTime) })
	for _, f := range files[min(mostLogs, len(files)):] {
		if err := c.Files.RemoveFile(ctx, c.Caller, ref, f.Path, sandbox.RemoveFileOptions{}); err != nil {
			return // it is the sandbox's own business
		}
	}
}

// SigName is a signal by its name, as SIGTERM.
func SigName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return fmt.Sprintf("signal %d", int(s))
}

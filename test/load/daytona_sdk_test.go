// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/packagestest"
)

// sdk is a process with many clients of one of Daytona's own SDKs, see testdata/sdk.py.
type sdk struct {
	name   string
	in     io.Writer
	out    *bufio.Scanner
	cmd    *exec.Cmd
	errors bytes.Buffer
	said   string // of what there was, at the end
}

// sdks starts processes of both languages, with clients each, and boxes sandboxes at most.
func (h *host) sdks(each, clients, boxes int) []*sdk {
	h.t.Helper()
	python := packagestest.NeedPip(h.t, "daytona-pip", "../daytona")
	p := packagestest.NeedNPM(h.t, "daytona-npm", "../daytona")
	script, err := filepath.Abs("testdata/sdk.mjs")
	if err != nil {
		h.t.Fatal(err)
	}
	var all []*sdk
	for n := range each {
		for language, args := range map[string][]string{"python": {python, "testdata/sdk.py"}, "typescript": {p.Node, script}} {
			s := &sdk{name: fmt.Sprint(language, n)}
			args = append(args, s.name, fmt.Sprint(clients), fmt.Sprint(boxes))
			s.cmd = exec.CommandContext(h.t.Context(), args[0], args[1:]...)
			s.cmd.Env = []string{
				"DAYTONA_API_URL=http://" + h.listen + "/daytona", "DAYTONA_API_KEY=" + h.token, "HOME=" + h.dir, "PYTHONDONTWRITEBYTECODE=1",
				"SDK=" + filepath.Join(p.Dir, "node_modules/@daytona/sdk"),
			}
			s.cmd.Stderr, s.cmd.WaitDelay = &s.errors, 10*time.Second
			out, err := s.cmd.StdoutPipe()
			if err == nil {
				s.in, err = s.cmd.StdinPipe()
			}
			if err == nil {
				err = s.cmd.Start()
			}
			if err != nil {
				h.t.Fatal(err)
			}
			s.out = bufio.NewScanner(out)
			s.out.Buffer(nil, 1<<20)
			all = append(all, s)
		}
	}
	for _, s := range all {
		if err := s.hears("ready"); err != nil {
			h.t.Fatal(err)
		}
	}
	return all
}

// say has clients do something, and returns when all have done it.
func say(sdks []*sdk, what string) error {
	g := group{limit: len(sdks) + 1}
	for _, s := range sdks {
		g.do(func() error {
			verb, _, _ := strings.Cut(what, " ")
			if _, err := fmt.Fprintln(s.in, what); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return s.hears("done " + verb)
		})
	}
	return g.wait()
}

// hears reads to a line that begins with want, and returns what was wrong before it.
func (s *sdk) hears(want string) error {
	var wrong []error
	for s.out.Scan() {
		line := s.out.Text()
		if rest, ok := strings.CutPrefix(line, want); ok {
			s.said = rest
			return errors.Join(wrong[:min(len(wrong), 10)]...)
		}
		wrong = append(wrong, fmt.Errorf("%s: %s", s.name, line))
	}
	return errors.Join(append(wrong, fmt.Errorf("%s ended: %w, %w\n%s", s.name, s.out.Err(), s.cmd.Wait(), s.errors.Bytes()))...)
}

// TestDaytonasSDKsSurviveKill9 is TestDaytonasClientsSurviveKill9 with the SDKs themselves among the clients, in a handful of
// processes that live through all kills: what an SDK was answered holds, and what it raises is of its own classes. That a
// connection broke is explained by a kill alone.
func TestDaytonasSDKsSurviveKill9(t *testing.T) {
	h := openAt(t, fixedAddress(t))
	sdks := h.sdks(length(1, 3), length(6, 10), 2)
	h.survivesClients(length(32, 160), length(8, 40), length(2, 75), sdks)
}

// endSDKs ends the processes, and says what there was.
func endSDKs(t *testing.T, sdks []*sdk) {
	t.Helper()
	if err := say(sdks, "end"); err != nil {
		t.Error(err)
	}
	for _, s := range sdks {
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", s.name, err, s.errors.Bytes())
		}
		t.Logf("%s: answers, errors and ends of streams:%s", s.name, s.said)
	}
}

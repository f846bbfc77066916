// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what scripts have beside the usual ones:
//
//	server start|stop|kill   run `sandpit serve`; end it with SIGTERM, or SIGKILL
//	status N CMD...          run CMD, which has to exit with exactly N
//	capture NAME             set a variable to the last standard output, trimmed
//	eventually PATTERN CMD...  run CMD until its output matches, or a minute is over
//	receiver                 take what webhooks send, see receiver_test.go
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"server": serverCommand, "status": status, "capture": capture, "eventually": eventually, "receiver": receiverCommand,
	}
}

func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	if neg || len(args) != 1 {
		ts.Fatalf("usage: server start|stop|kill")
	}
	switch args[0] {
	case "start":
		// Variables that the script has set are the server's, too.
		s.env = nil
		for _, name := range []string{
			"PATH", "HOME", "SANDPIT_CONFIG", "SANDPIT_RUN_DIR", "SANDPIT_DATA", "SANDPIT_IMAGES", "SANDPIT_LISTEN", "SANDPIT_ADMIN_TOKEN", "SANDPIT_MCP_GROUPS", "SANDPIT_SECRETS_KEY", "SANDPIT_SECRETS_KEY_FILE",
		} {
			if v := ts.Getenv(name); v != "" {
				s.env = append(s.env, name+"="+v)
			}
		}
		ts.Check(s.start())
	case "stop":
		ts.Check(s.end(syscall.SIGTERM))
	case "kill":
		ts.Check(s.end(syscall.SIGKILL))
	default:
		ts.Fatalf("usage: server start|stop|kill")
	}
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got, err := code(ts.Exec(args[1], args[2:]...))
	ts.Check(err)
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// eventually polls, at a pace that costs nothing, for what no command can wait
// for: the end of a command whose client is gone.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN CMD [ARG]...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for {
		err := ts.Exec(args[1], args[2:]...)
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-pace.C:
		case <-limit.C:
			ts.Fatalf("%s never said %q; the last error is %v", strings.Join(args[1:], " "), args[0], err)
		}
	}
}

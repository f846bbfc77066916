// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"path"
	"strings"
	"unicode/utf8"

	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// checkStart checks a command against its bounds, and fills in what it leaves out.
func (s *Server) checkStart(id string, st *wire.Start) error {
	switch {
	case !validProcessID(id):
		return fault.InvalidField("id", "%q is not a valid process id: 1 to %d lower-case letters, digits and dashes", message.Clip(id, 80), wire.MaxProcessID)
	case st == nil:
		return fault.InvalidField("command", "is missing")
	case st.Shell == "" && len(st.Argv) == 0:
		return fault.InvalidField("command", "is empty; give the text of a command, or a program and its arguments")
	case st.Shell != "" && len(st.Argv) > 0:
		return fault.InvalidField("command", "is given twice, as text and as arguments; give one of them")
	case len(st.Shell) > wire.MaxShell:
		return fault.InvalidField("command", "has %d bytes, over the bound of %d", len(st.Shell), wire.MaxShell).
			WithRemedy("write the script to a file and run that")
	case strings.ContainsRune(st.Shell, 0):
		return fault.InvalidField("command", "holds a NUL byte")
	}
	if err := checkArgv(st.Argv); err != nil {
		return err
	}
	if err := checkEnv(st.Env); err != nil {
		return err
	}
	if err := wire.CheckRedact(st.Redact); err != nil {
		return err
	}
	if st.Cwd = wire.UnescapeName(st.Cwd); st.Cwd == "" {
		st.Cwd = s.account.Load().workdir
	}
	if len(st.Cwd) > wire.MaxPath || strings.ContainsRune(st.Cwd, 0) {
		return fault.InvalidField("cwd", "%q is not a valid path: it has %d bytes of at most %d, without NUL", message.Clip(st.Cwd, 80), len(st.Cwd), wire.MaxPath)
	}
	if !strings.HasPrefix(st.Cwd, "/") {
		st.Cwd = path.Join(s.account.Load().workdir, st.Cwd)
	}
	if st.StdinSize < 0 || st.StdinSize > wire.MaxStdin {
		return fault.InvalidField("stdin", "has %d bytes, over the bound of %d", st.StdinSize, wire.MaxStdin).
			WithRemedy("write it to a file and redirect that")
	}
	if st.StdinSize > 0 && (st.StreamStdin || st.Terminal != nil) {
		return fault.InvalidField("stdin", "is given at once and streamed; it can be one of them")
	}
	if st.TimeoutMS < 0 {
		return fault.InvalidField("timeout", "%d ms is negative", st.TimeoutMS)
	}
	if err := checkCap("max_stdout", &st.MaxStdout); err != nil {
		return err
	}
	if err := checkCap("max_stderr", &st.MaxStderr); err != nil {
		return err
	}
	if t := st.Terminal; t != nil {
		if err := checkSize(t.Cols, t.Rows); err != nil {
			return err
		}
		if t.Term == "" {
			t.Term = "xterm-256color"
		}
		if len(t.Term) > 64 || strings.ContainsAny(t.Term, "\x00/=") {
			return fault.InvalidField("term", "%q is not a valid terminal type", message.Clip(t.Term, 40))
		}
	}
	return nil
}

func checkCap(field string, n *int64) error {
	switch {
	case *n == 0:
		*n = wire.DefaultOutput
	case *n < 0 || *n > wire.MaxOutput:
		return fault.InvalidField(field, "%d is outside 1 to %d bytes", *n, wire.MaxOutput)
	}
	return nil
}

func checkSize(cols, rows uint16) error {
	const most = 2000
	if cols < 1 || cols > most || rows < 1 || rows > most {
		return fault.InvalidField("terminal", "%d columns by %d rows is outside 1 to %d of each", cols, rows, most)
	}
	return nil
}

func checkArgv(argv []string) error {
	if len(argv) > wire.MaxArgs {
		return fault.InvalidField("command", "has %d arguments, over the bound of %d", len(argv), wire.MaxArgs)
	}
	total := 0
	for _, a := range argv {
		if strings.ContainsRune(a, 0) {
			return fault.InvalidField("command", "the argument %q holds a NUL byte", message.Clip(a, 40))
		}
		total += len(a) + 1
	}
	if total > wire.MaxArgBytes {
		return fault.InvalidField("command", "has %d bytes of arguments, over the bound of %d", total, wire.MaxArgBytes).
			WithRemedy("pass long arguments in a file or on stdin")
	}
	if len(argv) > 0 && argv[0] == "" {
		return fault.InvalidField("command", "the program's name is empty")
	}
	return nil
}

func checkEnv(env map[string]string) error {
	if len(env) > wire.MaxEnv {
		return fault.InvalidField("env", "has %d variables, over the bound of %d", len(env), wire.MaxEnv)
	}
	total := 0
	for name, value := range env {
		if !validEnvName(name) {
			return fault.InvalidField("env", "%q is not a valid variable name: at least one character, without = and NUL", message.Clip(name, 40))
		}
		if strings.ContainsRune(value, 0) {
			return fault.InvalidField("env", "the value of %s holds a NUL byte", message.Clip(name, 40))
		}
		total += len(name) + len(value) + 2
	}
	if total > wire.MaxEnvBytes {
		return fault.InvalidField("env", "has %d bytes, over the bound of %d", total, wire.MaxEnvBytes)
	}
	return nil
}

func validEnvName(name string) bool {
	return name != "" && len(name) <= 255 && !strings.ContainsAny(name, "=\x00") && utf8.ValidString(name)
}

// clipCommand is what a record keeps of a command.
func clipCommand(st *wire.Start) (argv []string, shell string, clipped bool) {
	if len(st.Shell) > wire.MaxRecordText {
		return nil, message.Clip(st.Shell, wire.MaxRecordText), true
	}
	left := wire.MaxRecordText
	for i, a := range st.Argv {
		if len(a) > left || i == 256 {
			return append(argv, message.Clip(a, min(left, len(a)))), "", true
		}
		argv = append(argv, a)
		left -= len(a)
	}
	return argv, st.Shell, false
}

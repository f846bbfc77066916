// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// Bounds of a cell.
const (
	MaxCode     = 1 << 20   // bytes
	MaxEnv      = 256       // variables
	MaxEnvBytes = 128 << 10 // of their names and values together
	MaxStdin    = 1 << 20   // bytes
	MaxArgv     = 128 << 10 // bytes of arguments together
)

// Cell is code to run.
type Cell struct {
	Code string
	Env  map[string]string // variables of the environment, for this cell only

	// Argv is the cell's arguments, for this cell only: in sys.argv from 1, in process.argv from 2, in bash $1 and so on.
	// Nil: they are as the cells before have left them.
	Argv []string

	// Stdin is the cell's standard input, in bash; in other languages it is fault.Invalid.
	// Empty: it is at its end.
	Stdin []byte

	// Deliver brings the cell to a kernel of bash in the place of [Transport.Write]. request returns what is to be
	// written to its input: for a cell that finds its input and its outputs in streams, whose output comes to no
	// Handler, or for nil for one with the kernel's own outputs and Stdin. Where told is false after an error, the
	// kernel has read nothing of it, and the session goes on.
	Deliver func(ctx context.Context, request func(*Streams) []byte) (told bool, err error)

	// Timeout interrupts the cell when it has run for so long; 0: never. Grace is how long the
	// cell may take to end then; 0: DefaultGrace.
	Timeout time.Duration
	Grace   time.Duration
	// Slept tells for how long the kernel has stood still so far, frozen with all around
	// it; Timeout and Grace do not count that. Nil: it never does.
	Slept func() time.Duration
}

// Streams are the paths of files or pipes of the sandbox.
type Streams struct {
	In  string // empty: Stdin of the cell
	Out string
	Err string // empty: as Out
}

// DefaultGrace is how long an interrupted cell may take to end.
const DefaultGrace = 2 * time.Second

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check is fault.TooLarge or fault.Invalid for what no kernel could be told.
func (c *Cell) check(l Language) error {
	if len(c.Stdin) > MaxStdin {
		return fault.New(fault.TooLarge, "stdin: has %d bytes, over the bound of %d", len(c.Stdin), MaxStdin).
			WithRemedy("write it to a file and redirect that")
	}
	if len(c.Stdin) > 0 && l != Bash {
		return fault.InvalidField("stdin", "is given, and cells of %s have none", l)
	}
	if len(c.Code) > MaxCode {
		return fault.New(fault.TooLarge, "code: has %d bytes, over the bound of %d", len(c.Code), MaxCode).
			WithRemedy("write it to a file and import or source that")
	}
	if !utf8.ValidString(c.Code) {
		return fault.InvalidField("code", "is not valid UTF-8")
	}
	if strings.ContainsRune(c.Code, 0) {
		return fault.InvalidField("code", "holds a NUL character, which no language here allows")
	}
	if err := CheckArgv(c.Argv); err != nil {
		return err
	}
	if c.Timeout < 0 || c.Grace < 0 {
		return fault.InvalidField("timeout", "%v and its grace %v: neither can be negative", c.Timeout, c.Grace)
	}
	size := 0
	for name, value := range c.Env {
		size += len(name) + len(value) + 2
		if !envName.MatchString(name) {
			return fault.InvalidField("env", "%.80q is not a valid variable name", name)
		}
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return fault.InvalidField("env", "the value of %.80s is not valid UTF-8, or holds a NUL", name)
		}
	}
	if len(c.Env) > MaxEnv || size > MaxEnvBytes {
		return fault.InvalidField("env", "has %d variables of %d bytes, over the bounds of %d and %d", len(c.Env), size, MaxEnv, MaxEnvBytes)
	}
	return nil
}

// CheckArgv is fault.Invalid for arguments that no cell could be given.
func CheckArgv(argv []string) error {
	size := 0
	for i, arg := range argv {
		size += len(arg) + 1
		if !utf8.ValidString(arg) || strings.ContainsRune(arg, 0) {
			return fault.InvalidField("argv", "argument %d is not valid UTF-8, or holds a NUL", i+1)
		}
	}
	if size > MaxArgv {
		return fault.InvalidField("argv", "has %d arguments of %d bytes, over the bound of %d bytes", len(argv), size, MaxArgv).
			WithRemedy("write them to a file and read that")
	}
	return nil
}

// hello is what a kernel is given first.
func (l Language) hello(token string) []byte {
	switch l {
	case Python:
		text := pythonText()
		return []byte(strconv.Itoa(len(text)) + " " + token + "\n" + text)
	case JavaScript, TypeScript:
		return []byte(strconv.Itoa(len(nodeText)) + " " + token + " " + string(l) + "\n" + nodeText)
	}
	// In two, so that what lists variables does not write it.
	half := len(token) / 2
	return []byte(bashQuiet + "__sandpit_a=" + token[:half] + " __sandpit_b=" + token[half:] + "\n" + bashText())
}

// run asks for a cell.
func (l Language) run(id int64, c Cell) []byte {
	if l == Bash {
		return bashRun(id, c, nil)
	}
	return framed(request{Op: "run", ID: id, Code: &c.Code, Env: c.Env, Argv: c.Argv})
}

// ping asks for an answer when no cell runs.
func (l Language) ping(id int64) []byte {
	if l == Bash {
		return []byte("__sandpit_pong " + strconv.FormatInt(id, 10) + " && :\n")
	}
	return framed(request{Op: "ping", ID: id})
}

// interrupt is said after the signal, where that is not enough: Node loses it, or ends by
// it, when it comes in the wrong moment, and a bash may drop the line that
// tells the cell's end.
func (l Language) interrupt(id int64) []byte {
	switch l {
	case JavaScript, TypeScript:
		return framed(request{Op: "interrupt", ID: id})
	case Bash:
		return []byte("__sandpit_end " + strconv.FormatInt(id, 10) + " 130 && :\n")
	}
	return nil
}

type request struct {
	Op   string            `json:"op"`
	ID   int64             `json:"id"`
	Code *string           `json:"code,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
	Argv []string          `json:"argv,omitempty"`
}

func framed(r request) []byte {
	b, _ := json.Marshal(r) // strings and a number always have JSON
	return append([]byte(strconv.Itoa(len(b))+"\n"), b...)
}

// bashRun is two lines. The first runs the cell; an interrupt drops what is left of it, and
// bash goes on with the second. A cell's status is passed on to the next one, and "&& :"
// keeps `set -e` and traps from taking it for a failure. It is `command` that gives the
// variables to children, which `builtin` does not.
func bashRun(id int64, c Cell, streams *Streams) []byte {
	var b strings.Builder
	n := strconv.FormatInt(id, 10)
	b.WriteString("__sandpit_start " + n + " $? && :; ")
	names := make([]string, 0, len(c.Env))
	for name := range c.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(name + "=" + quote(c.Env[name]) + " ")
	}
	b.WriteString(`\command source /dev/fd/197 `)
	for _, arg := range c.Argv {
		b.WriteString(quote(arg) + " ")
	}
	b.WriteString(bashStreams(c, streams) + ` 197<<<` + quote(c.Code) + " 198>&- 199>&-\n")
	b.WriteString("__sandpit_end " + n + " $? && :\n")
	return []byte(b.String())
}

// bashStreams is the redirections of a cell's three streams.
func bashStreams(c Cell, s *Streams) string {
	if s == nil {
		return bashStdin(c.Stdin) + ` >&198 2>&199`
	}
	in, errs := bashStdin(c.Stdin), "2>&1"
	if s.In != "" {
		in = "<" + quote(s.In)
	}
	if s.Err != "" {
		errs = "2>|" + quote(s.Err)
	}
	return in + " >|" + quote(s.Out) + " " + errs
}

// bashStdin is the redirection that gives a cell its input. A here-string ends with a
// line's end; what does not, or is no text, comes from a process, whose number is in $! then.
func bashStdin(in []byte) string {
	if len(in) == 0 {
		return "</dev/null"
	}
	if text, ok := bytes.CutSuffix(in, []byte("\n")); ok && utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 {
		return "<<<" + quote(string(text))
	}
	var b strings.Builder
	b.WriteString("< <(\\builtin printf %b '")
	for _, c := range in {
		switch {
		case c == '\n', c == '\t', c >= ' ' && c < 0x7f && c != '\'' && c != '\\':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "\\0%03o", c)
		}
	}
	b.WriteString("')")
	return b.String()
}

// quote is s as one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sudo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Where sudo is inside a sandbox. No image has the directory: it is on a file system of the sandbox's own.
const (
	Dir     = "/dev/sandpit"
	BinDir  = Dir + "/bin" // the first in PATH
	Program = BinDir + "/sudo"
	Socket  = Dir + "/sudo.sock"
)

// Descriptors is how many come with a request: stdin, stdout, stderr and the working directory.
const Descriptors = 4

// Bounds of a request.
const (
	MaxArgs     = 4096
	MaxArgBytes = 128 << 10
	MaxEnv      = 1000
	MaxEnvBytes = 128 << 10
	maxName     = 256
	maxPath     = 4096
	maxStrings  = MaxArgBytes + MaxEnvBytes + maxName + maxPath + 2
)

// Actions of a request.
const (
	Run      = iota // run Argv, or a shell
	Validate        // say whether the caller may use sudo
)

// Request is what a caller asks for.
type Request struct {
	Action uint8
	User   string // a name, or # and a number; "": root
	Cwd    string // the path of the directory that is the fourth descriptor
	// Login asks for the target's login shell, Shell for the caller's. Argv is then the command that it runs,
	// and may be empty.
	Login, Shell bool
	AllEnv       bool     // all of Env that may pass; else what passes always
	Terminal     uint8    // bit n: descriptor n is the caller's terminal, and shall be a new one
	Cols, Rows   uint16   // of the terminal
	Argv         []string // the program is looked for in the target's PATH
	Set          []string // VAR=value of the command line
	Env          []string // of the caller
}

const (
	flagLogin = 1 << iota
	flagShell
	flagAllEnv
)

var magic = [4]byte{'s', 'u', 'd', '1'}

const headerLen = 4 + 4 + 2*2 + 4*4 // magic; action, flags, terminal, nothing; size; counts and bytes

// Check returns an error where the request is over a bound, in the caller's words.
func (r *Request) Check() error {
	args, env := size(r.Argv), size(r.Set)+size(r.Env)
	switch {
	case len(r.Argv) > MaxArgs:
		return fmt.Errorf("the command has %d arguments, over the bound of %d", len(r.Argv), MaxArgs)
	case args > MaxArgBytes:
		return fmt.Errorf("the command has %d bytes of arguments, over the bound of %d; pass long ones in a file or on stdin", args, MaxArgBytes)
	case len(r.Set)+len(r.Env) > MaxEnv:
		return fmt.Errorf("%d variables are passed, over the bound of %d; leave -E out, or pass fewer", len(r.Set)+len(r.Env), MaxEnv)
	case env > MaxEnvBytes:
		return fmt.Errorf("the variables passed have %d bytes, over the bound of %d; leave -E out, or pass fewer", env, MaxEnvBytes)
	case len(r.User) >= maxName:
		return fmt.Errorf("the user's name has %d bytes, over the bound of %d", len(r.User), maxName-1)
	case len(r.Cwd) >= maxPath:
		return fmt.Errorf("the working directory's path has %d bytes, over the bound of %d", len(r.Cwd), maxPath-1)
	}
	return nil
}

func size(list []string) (n int) {
	for _, s := range list {
		n += len(s) + 1
	}
	return n
}

// Encode returns the request's bytes. It was checked.
func (r *Request) Encode() []byte {
	n := len(r.User) + len(r.Cwd) + 2 + size(r.Argv) + size(r.Set) + size(r.Env)
	b := make([]byte, 0, headerLen+n)
	flags := byte(0)
	for bit, is := range map[byte]bool{flagLogin: r.Login, flagShell: r.Shell, flagAllEnv: r.AllEnv} {
		if is {
			flags |= bit
		}
	}
	b = append(append(b, magic[:]...), r.Action, flags, r.Terminal, 0)
	b = binary.NativeEndian.AppendUint16(b, r.Cols)
	b = binary.NativeEndian.AppendUint16(b, r.Rows)
	for _, v := range []int{len(r.Argv), len(r.Set), len(r.Env), n} {
		b = binary.NativeEndian.AppendUint32(b, uint32(v))
	}
	b = append(append(b, r.User...), 0)
	b = append(append(b, r.Cwd...), 0)
	for _, list := range [][]string{r.Argv, r.Set, r.Env} {
		for _, s := range list {
			b = append(append(b, s...), 0)
		}
	}
	return b
}

// Read reads a request. A caller that is hostile gets no more of the reader's memory than a request may have.
func Read(from io.Reader) (*Request, error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(from, h[:]); err != nil {
		return nil, fmt.Errorf("the request ended early: %w", err)
	}
	if !bytes.Equal(h[:4], magic[:]) {
		return nil, errors.New("this is no request of this version of sudo")
	}
	count := func(i int) int { return int(binary.NativeEndian.Uint32(h[12+4*i:])) }
	args, set, env, n := count(0), count(1), count(2), count(3)
	if n > maxStrings || args > MaxArgs || set > MaxEnv || env > MaxEnv {
		return nil, fmt.Errorf("the request has %d bytes, %d arguments and %d variables, over the bounds of %d, %d and %d", n, args, set+env, maxStrings, MaxArgs, MaxEnv)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, fmt.Errorf("the request ended early: %w", err)
	}
	r := &Request{
		Action: h[4], Login: h[5]&flagLogin != 0, Shell: h[5]&flagShell != 0, AllEnv: h[5]&flagAllEnv != 0, Terminal: h[6],
		Cols: binary.NativeEndian.Uint16(h[8:]), Rows: binary.NativeEndian.Uint16(h[10:]),
	}
	whole := true
	next := func() string {
		s, rest, ok := bytes.Cut(b, []byte{0})
		whole = whole && ok
		b = rest
		return string(s)
	}
	take := func(n int) (list []string) {
		for i := 0; i < n && whole; i++ {
			list = append(list, next())
		}
		return list
	}
	r.User, r.Cwd = next(), next()
	r.Argv, r.Set, r.Env = take(args), take(set), take(env)
	switch {
	case !whole || len(b) > 0:
		return nil, errors.New("the request's lengths do not fit")
	case r.Action > Validate || r.Terminal > 7:
		return nil, errors.New("the request is of no known kind")
	}
	return r, r.Check()
}

// Kinds of frames.
const (
	Started = 'S' // by the agent: the command runs
	Exited  = 'E' // its exit code
	Killed  = 'K' // the signal that ended it
	Refused = 'R' // it does not run; the text says why
	Signal  = 'G' // by the caller: a signal for the command
)

// Frame is a message after the request. Value is a number, or how long the text is.
type Frame struct {
	Kind  byte
	Value uint32
	Text  string
}

// FrameLen is the length of a frame without its text.
const FrameLen = 5

// MaxText is how long a text may be.
const MaxText = 4 << 10

// Append appends the frame's bytes.
func (f Frame) Append(b []byte) []byte {
	v := f.Value
	if f.Kind == Refused {
		f.Text = f.Text[:min(len(f.Text), MaxText)]
		v = uint32(len(f.Text))
	}
	b = binary.NativeEndian.AppendUint32(append(b, f.Kind), v)
	return append(b, f.Text...)
}

// ParseFrame takes the part of a frame that has a fixed length; a Refused's text follows.
func ParseFrame(b [FrameLen]byte) Frame {
	return Frame{Kind: b[0], Value: binary.NativeEndian.Uint32(b[1:])}
}

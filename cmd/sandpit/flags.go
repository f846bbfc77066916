// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// period is a flag for a length of time: "90s", "15m", "2h", "7d", or seconds.
type period struct {
	d     time.Duration
	given bool
}

func (p *period) Type() string { return "TIME" }

func (p *period) String() string {
	if !p.given {
		return ""
	}
	return p.d.String()
}

func (p *period) Set(s string) error {
	bad := fmt.Errorf("%q is not a valid length of time; write it as 90s, 15m, 2h or 7d", s)
	number, unit := s, time.Second
	if head, days := strings.CutSuffix(s, "d"); days {
		number, unit = head, 24*time.Hour
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n < 0 || n > math.MaxInt64/int64(unit) {
			return bad
		}
		p.d, p.given = time.Duration(n)*unit, true
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return bad
	}
	p.d, p.given = d, true
	return nil
}

// seconds is for the wire: nil where the flag was not given.
func (p *period) seconds() *int64 {
	if !p.given {
		return nil
	}
	n := int64(p.d / time.Second)
	if n == 0 && p.d > 0 {
		n = 1 // zero would mean never
	}
	return &n
}

// exactSeconds is the same where the wire takes parts of a second.
func (p *period) exactSeconds() *float64 {
	if !p.given {
		return nil
	}
	n := p.d.Seconds()
	return &n
}

// megabytes is a flag for a size: "512", "512M", "2G", in MiB.
type megabytes struct {
	n     int
	given bool
}

func (m *megabytes) Type() string { return "SIZE" }

func (m *megabytes) String() string {
	if !m.given {
		return ""
	}
	return strconv.Itoa(m.n) + "M"
}

func (m *megabytes) Set(s string) error {
	t := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	factor := 1.0
	switch {
	case strings.HasSuffix(t, "M"):
		t = strings.TrimSuffix(t, "M")
	case strings.HasSuffix(t, "G"):
		t, factor = strings.TrimSuffix(t, "G"), 1024
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || !(n > 0) || n*factor > math.MaxInt32 || n*factor < 1 {
		return fmt.Errorf("%q is not a valid size; write it as 512M or 2G", s)
	}
	m.n, m.given = int(n*factor), true
	return nil
}

func (m *megabytes) value() *int {
	if !m.given {
		return nil
	}
	return &m.n
}

// pairs is a flag K=V that may be given again and again. A value may hold
// commas and further equals signs.
type pairs map[string]string

func (p pairs) Type() string { return "NAME=VALUE" }

func (p pairs) String() string { return "" }

func (p pairs) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	p[name] = value
	return nil
}

func (p pairs) value() map[string]string {
	if len(p) == 0 {
		return nil
	}
	return p
}

// variables are the flags --env NAME[=VALUE] and --env-file FILE. What --env says counts before what
// a file says, and of files what the last one says.
type variables struct {
	named, filed pairs
	getenv       func(string) string
}

// envFlags adds both. Usage says whose variables they are.
func (a *app) envFlags(f *pflag.FlagSet, usage string) *variables {
	v := &variables{pairs{}, pairs{}, a.getenv}
	f.VarP((*variable)(v), "env", "e", usage+"; NAME alone: with its value here; may be given again")
	f.Var((*variableFile)(v), "env-file", "read such variables from a file, one a line; may be given again")
	return v
}

// value is for the wire.
func (v *variables) value() map[string]string {
	all := maps.Clone(v.filed)
	maps.Copy(all, v.named)
	return all.value()
}

// variable is the flag --env.
type variable variables

func (v *variable) Type() string { return "NAME[=VALUE]" }

func (v *variable) String() string { return "" }

func (v *variable) Set(s string) error {
	name, value, err := (*variables)(v).read(s)
	if err != nil {
		return err
	}
	v.named[name] = value
	return nil
}

// read reads one variable.
func (v *variables) read(s string) (name, value string, err error) {
	name, value, ok := strings.Cut(s, "=")
	if name == "" {
		return "", "", fmt.Errorf("%q is not a valid variable; write it as NAME=VALUE, or as NAME to take its value from here", s)
	}
	if !ok {
		if value = v.getenv(name); value == "" {
			return "", "", fmt.Errorf("the variable %q is not set here, or empty; write %s=VALUE", name, name)
		}
	}
	return name, value, nil
}

// maxEnvFile is the most of a file of variables that is read, in bytes.
const maxEnvFile = 1 << 20

// variableFile is the flag --env-file.
type variableFile variables

func (v *variableFile) Type() string { return "FILE" }

func (v *variableFile) String() string { return "" }

// Set reads a file as docker does: a value is all that follows the equals sign, also its quotes;
// empty lines and those that begin with # are nothing.
func (v *variableFile) Set(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err != nil {
		return err
	}
	if len(b) > maxEnvFile {
		return fmt.Errorf("%s has more than %d bytes, which is no list of variables", name, maxEnvFile)
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\ufeff")) {
		n++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, err := (*variables)(v).read(line)
		if err == nil && strings.ContainsAny(key, " \t") {
			err = fmt.Errorf("%q is not the name of a variable: it has blanks; write NAME=VALUE", key)
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		v.filed[key] = value
	}
	return nil
}

// given is nil for a flag that was not given, so that the server's default holds.
func given[T any](flags *pflag.FlagSet, name string, value T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return &value
}

// keyIsName has --key mean --name: it is the same thing, which the API calls a key.
func keyIsName(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "key" {
			name = "name"
		}
		return pflag.NormalizedName(name)
	})
}

// clocks holds the flags for what ends a sandbox when nobody does.
type clocks struct {
	flags                 *pflag.FlagSet
	idle, retention, ttl  period
	idleAction, ttlMode   choice
	checkpoints           choice
	autoDelete, autoStart bool
	autoResume            bool
}

func clockFlags(c *cobra.Command) *clocks {
	f := c.Flags()
	k := &clocks{
		flags:      f,
		idleAction: choice{words: []string{"stop", "pause"}}, ttlMode: choice{words: []string{"absolute", "sliding"}},
		checkpoints: choice{words: []string{"off", "command"}},
	}
	f.Var(&k.idle, "idle-timeout", "stop it when idle this long (30m); 0: never")
	f.Var(&k.idleAction, "idle-action", "what to do when it is idle: stop or pause")
	f.Var(&k.retention, "retention", "delete it when stopped or paused this long (7d); 0: never")
	f.Var(&k.ttl, "ttl", "delete it this long from now, whatever it does (2h)")
	f.Var(&k.ttlMode, "ttl-mode", "absolute, or sliding: --ttl begins anew whenever it is used")
	f.BoolVar(&k.autoDelete, "auto-delete", false, "delete it as soon as it stops")
	f.BoolVar(&k.autoStart, "auto-start", true, "a call starts it when a clock or the host took it down")
	f.BoolVar(&k.autoResume, "auto-resume", false, "a call resumes it also when somebody paused it")
	f.Var(&k.checkpoints, "checkpoints", "off, or command: a snapshot after each command that changed a file")
	for _, name := range []string{"idle-action", "ttl-mode", "checkpoints"} {
		words := f.Lookup(name).Value.(*choice).words
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return k
}

func (k *clocks) bool(name string, value bool) *bool { return given(k.flags, name, value) }

// choice is a flag that is one of a few words.
type choice struct {
	words []string
	word  string
}

func (c *choice) Type() string { return "WORD" }

func (c *choice) String() string { return c.word }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(c.words, ", "))
	}
	c.word = s
	return nil
}

func (c *choice) value() *string {
	if c.word == "" {
		return nil
	}
	return &c.word
}

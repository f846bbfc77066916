// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Pairs is a flag K=V that may be given again and again. A value may hold
// commas and further equals signs.
type Pairs map[string]string

func (p Pairs) Type() string { return "NAME=VALUE" }

func (p Pairs) String() string { return "" }

func (p Pairs) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	p[name] = value
	return nil
}

func (p Pairs) Value() map[string]string {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Variables are the flags --env NAME[=VALUE] and --env-file FILE. What --env says counts before what
// a file says, and of files what the last one says.
type Variables struct {
	named, filed Pairs
	getenv       func(string) string
}

// EnvFlags adds both. Usage says whose variables they are; getenv has those of here.
func EnvFlags(f *pflag.FlagSet, getenv func(string) string, usage string) *Variables {
	v := &Variables{Pairs{}, Pairs{}, getenv}
	f.VarP((*variable)(v), "env", "e", usage+"; NAME alone: with its value here; may be given again")
	f.Var((*variableFile)(v), "env-file", "read such variables from a file, one a line; may be given again")
	return v
}

// Value is for the wire.
func (v *Variables) Value() map[string]string {
	all := maps.Clone(v.filed)
	maps.Copy(all, v.named)
	return all.Value()
}

// variable is the flag --env.
type variable Variables

func (v *variable) Type() string { return "NAME[=VALUE]" }

func (v *variable) String() string { return "" }

func (v *variable) Set(s string) error {
	name, value, err := (*Variables)(v).read(s)
	if err != nil {
		return err
	}
	v.named[name] = value
	return nil
}

// read reads one variable.
func (v *Variables) read(s string) (name, value string, err error) {
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
type variableFile Variables

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
		key, value, err := (*Variables)(v).read(line)
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

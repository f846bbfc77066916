// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sudo

import (
	"errors"
	"fmt"
	"strings"
)

// Usage is what sudo says of itself.
const Usage = `usage: sudo [-EHnkv] [-u user] [-i | -s] [VAR=value] [--] [command [argument ...]]
       sudo -l [command]
This sandbox's agent runs the command; no password is asked for.
  -u user      run as user, a name or #number, in place of root
  -i           run the target's login shell, in its home
  -s           run the shell of $SHELL
  -E           pass the environment, but for PATH and what a loader or an interpreter reads
  -H           set HOME to the target's home, as is always done
  -n           ask for nothing, as is always done
  -k           forget credentials: there are none
  -l           say what may be run
  -v           say whether sudo may be used
`

// Line is a command line of sudo's.
type Line struct {
	Request
	List, Help, Version, Forget bool
	Keep                        []string // names of --preserve-env=LIST
}

// Options that have an argument: those that are known, and those that are not.
const withArgument = "uCcDgpRrtTU"

// Parse reads the arguments behind the program's name. The error says what is wrong with them.
func Parse(args []string) (*Line, error) {
	l := &Line{}
	validate := false
	for len(args) > 0 {
		arg := args[0]
		if arg == "--" {
			args = args[1:]
			break
		}
		if name, _, ok := strings.Cut(arg, "="); ok && !strings.HasPrefix(arg, "-") && isName(name) {
			l.Set, args = append(l.Set, arg), args[1:]
			continue
		}
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		args = args[1:]
		if strings.HasPrefix(arg, "--") {
			var err error
			if args, err = l.long(arg[2:], args, &validate); err != nil {
				return nil, err
			}
			continue
		}
		for i := 1; i < len(arg); i++ {
			value, has := arg[i+1:], strings.IndexByte(withArgument, arg[i]) >= 0
			if has && value == "" {
				if len(args) == 0 {
					return nil, fmt.Errorf("the option -%c needs an argument", arg[i])
				}
				value, args = args[0], args[1:]
			}
			if err := l.option(arg[i], value, &validate); err != nil {
				return nil, err
			}
			if has {
				break
			}
		}
	}
	// Assignments may also stand behind --.
	for len(args) > 0 {
		name, _, ok := strings.Cut(args[0], "=")
		if !ok || !isName(name) {
			break
		}
		l.Set, args = append(l.Set, args[0]), args[1:]
	}
	l.Argv = args
	switch {
	case l.Help || l.Version:
		return l, nil
	case l.Login && l.Shell:
		return nil, errors.New("-i and -s are given; give one of them")
	case (validate || l.List) && (l.Login || l.Shell), validate && len(args) > 0, validate && l.List:
		return nil, errors.New("-v and -l are given beside something to run")
	case len(args) > 0 && args[0] == "":
		return nil, errors.New("the command's name is empty")
	}
	if validate || l.List {
		l.Action = Validate
	}
	if l.Action == Run && len(args) == 0 && !l.Login && !l.Shell && !l.Forget {
		return nil, errors.New("no command is given")
	}
	return l, nil
}

func (l *Line) option(o byte, value string, validate *bool) error {
	switch o {
	case 'u':
		if value == "" {
			return errors.New("-u: the user's name is empty")
		}
		l.User = value
	case 'E':
		l.AllEnv = true
	case 'i':
		l.Login = true
	case 's':
		l.Shell = true
	case 'v':
		*validate = true
	case 'l':
		l.List = true
	case 'h':
		l.Help = true
	case 'V':
		l.Version = true
	case 'k', 'K':
		l.Forget = true
	case 'n', 'H', 'S', 'A', 'B', 'p', 'P': // of passwords, which are not asked for, or as it is always done
	case 'b', 'e', 'C', 'c', 'D', 'g', 'R', 'r', 't', 'T', 'U', 'N':
		return fmt.Errorf("the option -%c is none of this sandbox's sudo; it has -u -n -E -H -i -s -k -v -l --", o)
	default:
		return fmt.Errorf("the option -%c is not known", o)
	}
	return nil
}

func (l *Line) long(name string, args []string, validate *bool) ([]string, error) {
	name, value, has := strings.Cut(name, "=")
	short, known := map[string]byte{
		"user": 'u', "preserve-env": 'E', "set-home": 'H', "login": 'i', "shell": 's', "reset-timestamp": 'k', "remove-timestamp": 'K',
		"validate": 'v', "list": 'l', "non-interactive": 'n', "stdin": 'S', "askpass": 'A', "bell": 'B', "prompt": 'p', "help": 'h', "version": 'V',
		"preserve-groups": 'P',
	}[name]
	switch {
	case !known:
		return args, fmt.Errorf("the option --%s is not known, or none of this sandbox's sudo", name)
	case short == 'E' && has: // a list of names
		l.Keep = append(l.Keep, strings.Split(value, ",")...)
		return args, nil
	case short == 'u' || short == 'p':
		if !has {
			if len(args) == 0 {
				return args, fmt.Errorf("the option --%s needs an argument", name)
			}
			value, args = args[0], args[1:]
		}
	case has:
		return args, fmt.Errorf("the option --%s has no argument", name)
	}
	return args, l.option(short, value, validate)
}

// isName reports whether s can stand before the = of VAR=value.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

// Script is a command as the text that a shell runs with -c: what could mean something to a shell is escaped.
func Script(argv []string) string {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a == "" {
			b.WriteString("''")
		}
		for j := range len(a) {
			c := a[j]
			switch {
			case c == '\n':
				b.WriteString("'\n'")
				continue
			case c == '_' || c == '-' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
			default:
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"github.com/spf13/pflag"

	v1 "sandpit.dev/api/v1"
)

// Account reads the flags that say how a sandbox's user is called, and where it works.
type Account struct {
	f                         *pflag.FlagSet
	name, home, workdir, user string
}

// AccountFlags defines them.
func AccountFlags(f *pflag.FlagSet) *Account {
	a := &Account{f: f}
	f.StringVar(&a.name, "account", "", "name of its user (sandbox)")
	f.StringVar(&a.home, "home", "", "home of its user (/home/NAME)")
	f.StringVar(&a.workdir, "workdir", "", "where commands start and relative paths begin (/workspace)")
	f.StringVar(&a.user, "default-user", "", "who commands run as that do not say: its user, or root")
	return a
}

// Value is what they say of the account; nil: nothing.
func (a *Account) Value() *v1.Account {
	if !a.f.Changed("account") && !a.f.Changed("home") && !a.f.Changed("workdir") {
		return nil
	}
	return &v1.Account{Name: a.name, Home: a.home, Workdir: a.workdir}
}

// User is who commands run as that do not say; nil: it is not said.
func (a *Account) User() *string { return Given(a.f, "default-user", a.user) }

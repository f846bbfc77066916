// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// Account is how a user is called, and where it works.
func Account(a sandbox.Account) v1.Account {
	a = a.Full()
	return v1.Account{Name: a.Name, Home: a.Home, Workdir: a.Workdir}
}

// AccountAsked is what a request says of the user; nil: nothing.
func AccountAsked(a *v1.Account, user *string) *sandbox.Account {
	if a == nil && user == nil {
		return nil
	}
	var out sandbox.Account
	if a != nil {
		out = sandbox.Account{Name: a.Name, Home: a.Home, Workdir: a.Workdir}
	}
	if user != nil {
		out.As = *user
	}
	return &out
}

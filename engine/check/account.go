// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// NoRoot is the error of what may not act as root.
func NoRoot() error {
	return fault.New(fault.Denied, "this server does not let anything act as root in its sandboxes").
		WithRemedy("leave as_user out, to act as %q", sandbox.UserSandbox)
}

// Account checks the account of a new sandbox, fills in what it leaves out, and returns its normal form.
// Nil is the default one. Commands that run as root, where forbidRoot is set, are fault.Denied. A volume below one
// of its directories, at, is wrong where that directory may be new: it would be root's, for the volume to be mounted.
func (k *Fields) Account(a *sandbox.Account, at []string, forbidRoot bool) (sandbox.Account, error) {
	if a == nil {
		return sandbox.Account{}, nil
	}
	k.Add(a.Check())
	if a.As == sandbox.UserRoot && forbidRoot {
		return *a, NoRoot()
	}
	out := a.Normal()
	if out.As != sandbox.UserRoot {
		out.As = ""
	}
	if out.Default() {
		return out, nil
	}
	for field, dir := range map[string]string{"account.home": out.Home, "account.workdir": out.Workdir} {
		for _, volume := range at {
			if dir != sandbox.Home && dir != sandbox.Workspace && strings.HasPrefix(volume, dir+"/") {
				k.Bad(field, "the volume at %q is below %q, which would be root's then", sandbox.Clip(volume, 80), sandbox.Clip(dir, 80))
			}
		}
	}
	return out, nil
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"maps"
	"strings"

	"sandpit.dev/sandbox"
)

// Variables are what commands begin with, by who runs them: the sandbox's own user, or any other.
type Variables struct{ user, others map[string]string }

// NewVariables returns those of a sandbox: own, which are of its record, over its image's. programs is where the
// runtime has programs of its own; empty: nowhere.
func NewVariables(image, own map[string]string, of *sandbox.Sandbox, programs string) *Variables {
	env := make(map[string]string, len(image)+len(own))
	maps.Copy(env, image)
	if search, ok := env["PATH"]; ok && !of.Account.Default() { // what the user installs is found
		env["PATH"] = strings.ReplaceAll(search, sandbox.Home+"/", of.Account.Home+"/")
	}
	maps.Copy(env, own)
	v := &Variables{user: env, others: sandbox.ForRoot(env, of.Mounts, of.Account)}
	if programs == "" {
		return v
	}
	for _, env := range []map[string]string{v.user, v.others} {
		if path := env["PATH"]; path != "" { // without one the agent has its own
			env["PATH"] = programs + ":" + path
		}
	}
	return v
}

// Of returns a user's, which the caller does not change.
func (v *Variables) Of(user string) map[string]string {
	if user == sandbox.UserSandbox {
		return v.user
	}
	return v.others
}

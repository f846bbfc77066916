// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// Account is how a sandbox's user is called, and where it works. What a request leaves out is that of the
// default account, but for the home, which has the name's.
type Account struct {
	Name    string `json:"name,omitempty" jsonschema:"1 to 32 lower-case letters, digits, dashes and underscores; the default is sandbox. Its number is 1000 always"`
	Home    string `json:"home,omitempty" jsonschema:"its home, an absolute path; the default is /home/NAME. It is made, or is the user's in the image"`
	Workdir string `json:"workdir,omitempty" jsonschema:"where commands start and relative paths begin, likewise; the default is /workspace"`
}

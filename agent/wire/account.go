// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Account is the sandbox's user as it is to be called, and where it works.
type Account struct {
	Name    string `json:"name"`
	Home    string `json:"home"`
	Workdir string `json:"workdir"`
	// Again: the disk had the account already. What became of its directories is the sandbox's
	// own affair then, and nothing is refused.
	Again bool `json:"again,omitempty"`
	// Lazy: the reply comes at once, and all that the account is for waits until it is made. It is for
	// who knows that nothing on the disk speaks against it; what does is the error of what waits.
	Lazy bool `json:"lazy,omitempty"`
}

// Bounds of an account, and of the files that tell of accounts.
const (
	MaxUserName     = 32
	MaxAccountPath  = 1024
	MaxAccountsFile = 1 << 20 // bytes of /etc/passwd, and of /etc/group, that are read
	MaxAccounts     = 1000    // that are told
)

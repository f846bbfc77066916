// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"io"
	"os"

	"sandpit.dev/runtime/native/boot"
)

// blank is a process 1 that was started in the groups of a life that ended, and waits for its
// boot message.
type blank struct {
	uids  uidRange // without a network namespace: process 1 has it
	first *firstProcess
	files boot.Files  // all but its disk and its inside
	held  []io.Closer // what files are made of
}

func (b *blank) hold(f *os.File, err error) (*os.File, error) {
	if err == nil {
		b.held = append(b.held, f)
	}
	return f, err
}

// end undoes what heir did.
func (b *blank) end(i *Instance) {
	i.d.closer.drop(b.held)
	b.first.end(i)
	i.d.uids.give(b.uids)
}

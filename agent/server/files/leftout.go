// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// leave notes what is left out.
func (k *packer) leave(name, why string) error {
	leftOut(&k.sum, name, why)
	return k.ctx.Err()
}

func leftOut(sum *wire.Packed, name, why string) {
	if sum.LeftAll++; len(sum.Left) < wire.MaxLeftOut {
		sum.Left = append(sum.Left, wire.LeftOut{Path: message.Clip(wire.EscapeName(name), wire.MaxLeftPath), Reason: why})
	}
}

// leftWord says why an entry is left out.
func leftWord(err error) string {
	if told, ok := errors.AsType[*fault.Error](err); ok {
		return told.Message
	}
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "the user may not"
	case errors.Is(err, dirs.ErrPseudo):
		return "it is on a file system of the kernel's"
	case errors.Is(err, unix.ENOENT):
		return "there is nothing"
	case errors.Is(err, unix.EXDEV):
		return "a link on its way leads out"
	}
	return message.Of(err)
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package changed

import (
	"sandpit.dev/agent/wire"
)

// itemBytes is how many bytes of paths go into one answer.
const itemBytes = 96 << 10

// Send sends what changed as the answer to a call.
func (c Changes) Send(send func(wire.Type, any) error) error {
	for rest := c.Files; len(rest) > 0; {
		n := 0
		for size := 0; n < len(rest) && size < itemBytes; n++ {
			size += len(rest[n].Path)
			rest[n].Path = wire.EscapeName(rest[n].Path)
		}
		if err := send(wire.Item, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return send(wire.Done, wire.Changed{Total: c.Total, Why: c.Why})
}

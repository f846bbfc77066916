// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"slices"

	"sandpit.dev/fault"
	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// refuseInHeaders returns fault.Conflict where the value of a secret that is to be set stands in a header that the policy of
// its sandbox sets, or of any one of its project: that is on record in plain text, and shown to who sees the sandbox. The
// other way round the policy is refused, see Refuse.
func refuseInHeaders(tx store.Tx, s Secret) error {
	if len(s.Value) < MinRefused {
		return nil
	}
	value := Labels([]Secret{s})
	if s.Sandbox != "" {
		one, err := tx.Sandboxes().Get(s.Sandbox)
		if err != nil {
			return err
		}
		return inHeaders(value, s.Name, one)
	}
	q := store.SandboxQuery{Project: s.Project, Oldest: true, Limit: store.MaxPage}
	for {
		page, next, err := tx.Sandboxes().List(q)
		if err != nil {
			return err
		}
		for _, one := range page {
			if err := inHeaders(value, s.Name, one); err != nil {
				return err
			}
		}
		if q.Cursor = next; next == "" {
			return nil
		}
	}
}

func inHeaders(value *redact.Labels, name string, s *sandbox.Sandbox) error {
	for _, host := range slices.Sorted(maps.Keys(s.Network.Headers)) {
		headers := s.Network.Headers[host]
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			if value.In(MinRefused, host, header, headers[header]) == "" {
				continue
			}
			return fault.New(fault.Conflict, "the value of the secret %s stands in the header %s for %s in the network policy of the sandbox %s, which is kept in plain text",
				name, value.String(header), value.String(host), s.ID).
				WithRemedy("take that header out of the policy first (sandpit network set %s), then set the secret, for the host where it is to be sent there", s.ID)
		}
	}
	return nil
}

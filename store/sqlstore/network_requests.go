// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// networkRequests is store.NetworkRequests within one transaction.
type networkRequests struct{ tx *tx }

const networkRequestColumns = "id, sandbox, ref, project, presets, domains, names, why, actor, at, until"

const (
	insertNetworkRequest = "INSERT INTO network_requests (" + networkRequestColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING"
	allNetworkRequests   = "SELECT " + networkRequestColumns + " FROM network_requests ORDER BY at, id"
	deleteNetworkRequest = "DELETE FROM network_requests WHERE id = $1"
	expireNetworkRequest = "DELETE FROM network_requests WHERE until <= $1"
	dropNetworkRequests  = "DELETE FROM network_requests WHERE sandbox = $1"
)

var _ store.NetworkRequests = networkRequests{}

func (q networkRequests) Insert(r *store.NetworkRequest) error {
	names := make([]string, len(r.Names))
	for i, n := range r.Names {
		names[i] = n.Preset + " " + n.Domain + " " + n.Source
	}
	n, err := q.tx.exec(insertNetworkRequest, r.ID, string(r.Sandbox), r.Ref, r.Project, strings.Join(r.Presets, " "), strings.Join(r.Domains, " "),
		strings.Join(names, "\n"), r.Why, r.Actor, micros(r.At), micros(r.Until))
	if err == nil && n == 0 {
		err = fault.New(fault.Exists, "there is a request for a network with the id %q", sandbox.Clip(r.ID, 40))
	}
	return err
}

func (q networkRequests) All() ([]*store.NetworkRequest, error) {
	var out []*store.NetworkRequest
	err := q.tx.each(allNetworkRequests, nil, func(scan func(...any) error) error {
		var r store.NetworkRequest
		var presets, domains, names string
		var at, until int64
		err := scan(&r.ID, (*string)(&r.Sandbox), &r.Ref, &r.Project, &presets, &domains, &names, &r.Why, &r.Actor, &at, &until)
		if err != nil {
			return err
		}
		r.Presets, r.Domains = words(presets), words(domains)
		for line := range strings.Lines(names) {
			if f := strings.Fields(line); len(f) == 3 {
				r.Names = append(r.Names, sandbox.PresetDomain{Preset: f[0], Domain: f[1], Source: f[2]})
			}
		}
		r.At, r.Until = fromMicros(at), fromMicros(until)
		out = append(out, &r)
		return nil
	})
	return out, err
}

// words returns the words of a text; nil for none.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

func (q networkRequests) Delete(id string) error {
	n, err := q.tx.exec(deleteNetworkRequest, id)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "there is no request for a network with the id %q", sandbox.Clip(id, 40))
	}
	return err
}

func (q networkRequests) Expire(now time.Time) error {
	_, err := q.tx.exec(expireNetworkRequest, micros(now))
	return err
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	v1 "sandpit.dev/api/v1"
)

// Stats returns what a sandbox uses, and its last hour. Asking does not count as a use of it.
func (c *Client) Stats(ctx context.Context, ref string) (*v1.SandboxStats, error) {
	s := new(v1.SandboxStats)
	_, err := c.call(ctx, request{method: "GET", path: of(ref, "/stats")}, s)
	return s, err
}

// FollowStats passes what a sandbox uses to do, at once and then every two seconds, until ctx is done or do fails. The hour
// is in the first alone.
func (c *Client) FollowStats(ctx context.Context, ref string, do func(*v1.SandboxStats) error) error {
	return followStats(ctx, c, of(ref, "/stats"), make(url.Values), do)
}

// StatsProcesses is Stats with what runs in the sandbox, at most so many processes (1 to 500), who uses most first.
func (c *Client) StatsProcesses(ctx context.Context, ref string, most int) (*v1.SandboxStats, error) {
	s := new(v1.SandboxStats)
	_, err := c.call(ctx, request{method: "GET", path: of(ref, "/stats"), query: url.Values{"processes": {strconv.Itoa(most)}}}, s)
	return s, err
}

// FollowStatsProcesses is FollowStats with what StatsProcesses returns.
func (c *Client) FollowStatsProcesses(ctx context.Context, ref string, most int, do func(*v1.SandboxStats) error) error {
	return followStats(ctx, c, of(ref, "/stats"), url.Values{"processes": {strconv.Itoa(most)}}, do)
}

// StatsQuery is which sandboxes [Client.AllStats] is about.
type StatsQuery struct {
	AllProjects bool // those of all projects, for the server's own administrator's token
	History     bool // with the last hour by the minute
}

func (q StatsQuery) values() url.Values {
	v := make(url.Values)
	if q.AllProjects {
		v.Set("all_projects", "true")
	}
	if q.History {
		v.Set("history", "true")
	}
	return v
}

// AllStats returns what each sandbox uses that is up, and all together.
func (c *Client) AllStats(ctx context.Context, q StatsQuery) (*v1.StatsList, error) {
	l := new(v1.StatsList)
	_, err := c.call(ctx, request{method: "GET", path: "/stats", query: q.values()}, l)
	return l, err
}

// FollowAllStats is FollowStats of what AllStats returns.
func (c *Client) FollowAllStats(ctx context.Context, q StatsQuery, do func(*v1.StatsList) error) error {
	return followStats(ctx, c, "/stats", q.values(), do)
}

func followStats[T any](ctx context.Context, c *Client, path string, q url.Values, do func(*T) error) error {
	q.Set("follow", "true")
	resp, err := c.do(ctx, request{method: "GET", path: path, query: q, header: http.Header{"Accept": {"text/event-stream"}}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return c.each(ctx, resp.Body, "stats", "follow them again", func(ev event) (bool, error) {
		switch ev.name {
		case v1.StreamError:
			var p v1.Problem
			if err := json.Unmarshal(ev.data, &p); err != nil {
				return true, garbled(err)
			}
			return true, faultOf(&p, "")
		case v1.StatsEvent:
			v := new(T)
			if err := json.Unmarshal(ev.data, v); err != nil {
				return true, garbled(err)
			}
			return false, do(v)
		}
		return false, nil // of a later server
	})
}

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Info is what an Engine says of itself.
type Info struct {
	ID              string
	ServerVersion   string
	RootDir         string `json:"DockerRootDir"`
	Driver          string // of layers: overlay2, btrfs, vfs
	DriverStatus    [][2]string
	OSType          string
	Architecture    string
	KernelVersion   string
	OperatingSystem string
	CgroupDriver    string
	CgroupVersion   string
	MemoryLimit     bool
	SwapLimit       bool
	PidsLimit       bool
	CPUCfsQuota     bool `json:"CpuCfsQuota"`
	SecurityOptions []string
	DefaultRuntime  string
	Runtimes        map[string]any
	NCPU            int
	MemTotal        int64
}

// Info asks the Engine what it is, and what it can limit.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var out Info
	return out, c.call(ctx, request{method: http.MethodGet, path: "/info", within: callTimeout}, &out)
}

// Event is something that happened to a container.
type Event struct {
	Action string // die, oom, pause, …
	Actor  struct {
		ID         string
		Attributes map[string]string // labels, exitCode
	}
	TimeNano int64 `json:"timeNano"`
}

// Events tells of containers as things happen to them.
type Events struct{ lines *lines }

// Events listens to what happens to containers with these labels, of the kinds given, since a
// time by the Engine's clock; zero: from now on. It has begun when it returns. The caller closes it.
func (c *Client) Events(ctx context.Context, since time.Time, kinds []string, labels ...string) (*Events, error) {
	filters, err := json.Marshal(map[string][]string{"type": {"container"}, "event": kinds, "label": labels})
	if err != nil {
		return nil, err
	}
	q := url.Values{"filters": {string(filters)}}
	if !since.IsZero() {
		q.Set("since", fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()))
	}
	s, err := c.stream(ctx, request{method: http.MethodGet, path: "/events", query: q, within: callTimeout}, 0, eventsLast)
	if err != nil {
		return nil, err
	}
	return &Events{s}, nil
}

// Next waits for the next event. io.EOF is an Engine that ended, and [ErrOver] that it is time to listen anew.
func (e *Events) Next() (Event, error) {
	var out Event
	return out, e.lines.next(&out)
}

// Close ends it; a Next that waits fails then.
func (e *Events) Close() { e.lines.close() }

// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// Container is what a container is made of.
type Container struct {
	Name   string     `json:"-"`
	Config            // embedded, as the API has it
	Host   HostConfig `json:"HostConfig"`
}

// Config is the part of a container that is the same on every host.
type Config struct {
	Image        string            `json:"Image"`
	Hostname     string            `json:"Hostname,omitempty"`
	User         string            `json:"User"`
	Entrypoint   []string          `json:"Entrypoint"`
	Cmd          []string          `json:"Cmd"`
	Env          []string          `json:"Env,omitempty"`
	WorkingDir   string            `json:"WorkingDir,omitempty"`
	Labels       map[string]string `json:"Labels,omitempty"`
	StopSignal   string            `json:"StopSignal,omitempty"`
	Healthcheck  *Healthcheck      `json:"Healthcheck,omitempty"`
	Volumes      map[string]any    `json:"Volumes,omitempty"`
	AttachStdout bool              `json:"AttachStdout"`
	AttachStderr bool              `json:"AttachStderr"`
}

// Healthcheck is a command that an Engine runs now and then; {"NONE"} takes that of the image away.
type Healthcheck struct{ Test []string }

// HostConfig is what a container gets of its host.
type HostConfig struct {
	NetworkMode    string
	IpcMode        string `json:",omitempty"`
	CapDrop        []string
	CapAdd         []string `json:",omitempty"`
	SecurityOpt    []string `json:",omitempty"`
	Privileged     bool
	ReadonlyRootfs bool
	AutoRemove     bool  `json:",omitempty"` // it is removed when it ends
	Init           *bool `json:",omitempty"`
	LogConfig      struct{ Type string }
	RestartPolicy  struct{ Name string }
	Mounts         []Mount           `json:",omitempty"`
	Tmpfs          map[string]string `json:",omitempty"`
	ShmSize        int64             `json:",omitempty"`
	Runtime        string            `json:",omitempty"`
	OomScoreAdj    int               `json:",omitempty"`
	Ulimits        []Ulimit          `json:",omitempty"`
	Sysctls        map[string]string `json:",omitempty"` // of its own namespaces
	StorageOpt     map[string]string `json:",omitempty"` // of the driver of layers
	Resources
}

// Resources are limits, which can change while a container runs.
type Resources struct {
	NanoCpus   int64 `json:",omitempty"`
	Memory     int64 `json:",omitempty"` // bytes
	MemorySwap int64 `json:",omitempty"` // bytes, with Memory
	PidsLimit  int64 `json:",omitempty"`
}

// linuxResources are Resources as the runtime specification of OCI has them.
type linuxResources struct {
	CPU    linuxCPU    `json:"cpu"`
	Memory linuxMemory `json:"memory"`
	Pids   linuxPids   `json:"pids"`
}

type (
	linuxCPU struct {
		Quota  int64  `json:"quota"`  // microseconds of each period
		Period uint64 `json:"period"` // microseconds
	}
	linuxMemory struct {
		Limit int64 `json:"limit"` // bytes
		Swap  int64 `json:"swap"`  // bytes, of both together
	}
	linuxPids struct {
		Limit int64 `json:"limit"`
	}
)

// cpuPeriod is the kernel's own, in microseconds.
const cpuPeriod = 100_000

func (r Resources) linux() linuxResources {
	return linuxResources{
		linuxCPU{r.NanoCpus * cpuPeriod / 1e9, cpuPeriod}, linuxMemory{r.Memory, r.MemorySwap}, linuxPids{r.PidsLimit},
	}
}

// Ulimit is one of setrlimit(2).
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Mount is a volume or a directory of the host.
type Mount struct {
	Type     string // volume, bind
	Source   string
	Target   string
	ReadOnly bool
	Volume   *VolumeOptions `json:"VolumeOptions,omitempty"`
}

// VolumeOptions say how a volume is mounted.
type VolumeOptions struct {
	NoCopy  bool   `json:",omitempty"` // an empty one is not filled with what the image has there
	Subpath string `json:",omitempty"` // a directory in the volume, which is there; see [Client.MountsParts]
}

// State is what an Engine says of a container's processes.
type State struct {
	Status     string // created, running, paused, restarting, removing, exited, dead
	Running    bool
	Paused     bool
	OOMKilled  bool
	Dead       bool
	Pid        int
	ExitCode   int
	Error      string
	StartedAt  time.Time
	FinishedAt time.Time
}

// Inspected is a container as its Engine has it.
type Inspected struct {
	ID         string `json:"Id"`
	Name       string
	Image      string // id of its image
	State      State
	Config     Config
	HostConfig HostConfig
	Mounts     []MountPoint

	// NetworkSettings has the networks that it is connected to, by name.
	NetworkSettings struct{ Networks map[string]struct{} }
}

// MountPoint is what is mounted in a container.
type MountPoint struct{ Type, Name, Source, Destination string }

// Listed is a container in a list.
type Listed struct {
	ID      string   `json:"Id"`
	Names   []string // each with a slash before it
	ImageID string
	State   string
	Created int64 // seconds
	Labels  map[string]string
}

// CreateContainer makes a container and returns its id. A name that is taken is fault.Conflict, a
// missing image fault.NotFound.
func (c *Client) CreateContainer(ctx context.Context, made Container) (string, error) {
	var out struct {
		ID string `json:"Id"`
	}
	err := c.call(ctx, request{
		method: http.MethodPost, path: "/containers/create", query: url.Values{"name": {made.Name}}, in: made, within: workTimeout,
	}, &out)
	if err == nil && out.ID == "" {
		err = c.noEngine(nil, "makes a container without an id")
	}
	return out.ID, err
}

// StartContainer starts one that does not run; of one that runs it is no error.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodPost, path: container(id, "/start"), within: workTimeout}, nil)
}

// StopContainer sends the container's process its signal to stop, and kills what is left after
// grace; of one that is down it is no error.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	seconds := int((grace + time.Second - 1) / time.Second)
	return c.call(ctx, request{
		method: http.MethodPost, path: container(id, "/stop"), query: url.Values{"t": {strconv.Itoa(seconds)}}, within: workTimeout + grace,
	}, nil)
}

// KillContainer kills all of it. One that does not run is fault.Conflict. It may be down only after a moment.
func (c *Client) KillContainer(ctx context.Context, id string) error {
	if c.Podman() { // whose call of this API waits up to twenty seconds for what cleans up after a container
		return c.call(ctx, request{method: http.MethodPost, path: "/v4.0.0/libpod" + container(id, "/kill"), query: url.Values{"signal": {"SIGKILL"}}, within: workTimeout, bare: true}, nil)
	}
	return c.call(ctx, request{method: http.MethodPost, path: container(id, "/kill"), within: workTimeout}, nil)
}

// PauseContainer freezes it. One that is paused or down is fault.Conflict.
func (c *Client) PauseContainer(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodPost, path: container(id, "/pause"), within: workTimeout}, nil)
}

// CannotFreeze reports whether an Engine says that the kernel did not freeze a container while its OCI runtime waited for that, half a
// second or so: a process that waits for a disk cannot be. It goes on.
func CannotFreeze(err error) bool {
	cause := errors.Unwrap(err)
	return cause != nil && strings.Contains(cause.Error(), "unable to freeze")
}

// AlreadyPaused reports whether an Engine says that a container is paused already. It is wrong for a moment where the word of an
// earlier pause reaches it after the resume that followed.
func AlreadyPaused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "already paused")
}

// ResumeContainer lets it continue. One that is not paused is an error.
func (c *Client) ResumeContainer(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodPost, path: container(id, "/unpause"), within: workTimeout}, nil)
}

// UpdateContainer sets limits, also of one that runs. Podman sets those of one that runs, and nothing else: its next start
// has those that it was made with.
func (c *Client) UpdateContainer(ctx context.Context, id string, r Resources) error {
	if c.Podman() { // version 4.3, which has it first, has it under this name
		return c.call(ctx, request{method: http.MethodPost, path: "/v4.3.0/libpod" + container(id, "/update"), in: r.linux(), within: workTimeout, bare: true}, nil)
	}
	return c.call(ctx, request{method: http.MethodPost, path: container(id, "/update"), in: r, within: workTimeout}, nil)
}

// RenameContainer gives it another name.
func (c *Client) RenameContainer(ctx context.Context, id, name string) error {
	return c.call(ctx, request{
		method: http.MethodPost, path: container(id, "/rename"), query: url.Values{"name": {name}}, within: callTimeout,
	}, nil)
}

// RemoveContainer ends and removes it, with its anonymous volumes.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	return c.call(ctx, request{
		method: http.MethodDelete, path: container(id, ""), query: url.Values{"force": {"1"}, "v": {"1"}}, within: workTimeout,
	}, nil)
}

// CleansUp reports whether Podman says that it could not remove a container's disk while what cleans up after a container that ended
// was at work on it. It can a moment later.
func CleansUp(err error) bool {
	cause := errors.Unwrap(err)
	return fault.Is(err, fault.Unavailable) && cause != nil && (strings.Contains(cause.Error(), "cleaning up storage") || strings.Contains(cause.Error(), "replacing mount point"))
}

// InspectContainer returns what the Engine knows of it, by id or name.
func (c *Client) InspectContainer(ctx context.Context, id string) (Inspected, error) {
	var out Inspected
	return out, c.call(ctx, request{method: http.MethodGet, path: container(id, "/json"), within: callTimeout}, &out)
}

// RuntimeOf returns the name of the OCI runtime that a container has.
func (c *Client) RuntimeOf(ctx context.Context, i Inspected) (string, error) {
	if i.HostConfig.Runtime != "oci" || !c.Podman() { // which Podman says of each to who speaks Docker's API
		return i.HostConfig.Runtime, nil
	}
	var out struct{ OCIRuntime string }
	err := c.call(ctx, request{method: http.MethodGet, path: "/v4.0.0/libpod" + container(i.ID, "/json"), within: callTimeout, bare: true}, &out)
	return path.Base(out.OCIRuntime), err
}

// ListContainers returns all containers, up or down, that have these labels: name, or name=value.
func (c *Client) ListContainers(ctx context.Context, labels ...string) ([]Listed, error) {
	return c.listContainers(ctx, labelled(labels))
}

// ListUsers returns all containers, up or down, that have a volume.
func (c *Client) ListUsers(ctx context.Context, volume string) ([]Listed, error) {
	return c.listContainers(ctx, filters("volume", volume))
}

func (c *Client) listContainers(ctx context.Context, filters string) ([]Listed, error) {
	var out []Listed
	return out, c.call(ctx, request{
		method: http.MethodGet, path: "/containers/json", query: url.Values{"all": {"1"}, "filters": {filters}}, within: callTimeout,
	}, &out)
}

// Stats is what a container uses. What its Engine does not count is zero.
type Stats struct {
	CPU struct {
		Usage struct {
			Total uint64 `json:"total_usage"` // nanoseconds
		} `json:"cpu_usage"`
	} `json:"cpu_stats"`
	Memory struct {
		Usage uint64            `json:"usage"`
		Max   uint64            `json:"max_usage"`
		Limit uint64            `json:"limit"`
		Stats map[string]uint64 `json:"stats"`
	} `json:"memory_stats"`
	Pids struct {
		Current uint64 `json:"current"`
	} `json:"pids_stats"`
}

// ContainerStats reads once what a container uses now.
func (c *Client) ContainerStats(ctx context.Context, id string) (Stats, error) {
	var out Stats
	return out, c.call(ctx, request{
		method: http.MethodGet, path: container(id, "/stats"), query: url.Values{"stream": {"0"}, "one-shot": {"1"}}, within: callTimeout,
	}, &out)
}

// container returns a path of one. Ids are the Engine's, and are data all the same.
func container(id, verb string) string { return "/containers/" + url.PathEscape(id) + verb }

func labelled(labels []string) string { return filters("label", labels...) }

// filters returns what a list is asked for: things that have all the values of one kind.
func filters(kind string, values ...string) string {
	b, err := json.Marshal(map[string][]string{kind: values})
	if err != nil {
		panic(err) // strings are always JSON
	}
	return string(b)
}

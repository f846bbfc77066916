// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/kubernetes"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// Runtimes are the kinds of runtime that a server has, each its section of the configuration.
// This is the only place that names them: a new one is a field and an entry of list.
type Runtimes struct {
	// Names are the runtimes that the server has, the first by default; none: native, docker where docker.host is set,
	// kubernetes where kubernetes.kubeconfig is, and all clusters. The others are neither opened nor looked after.
	Names  []string    `yaml:"runtimes"`
	Native native.Kind `yaml:"native"`
	Docker docker.Kind `yaml:"docker"`

	Kubernetes kubernetes.Kind `yaml:"kubernetes"`
	// Clusters are further runtimes of the kind kubernetes, by names of their own: of other clusters, or for pods of another class or on other nodes.
	Clusters map[string]*kubernetes.Kind `yaml:"clusters"`
	// Others are further kinds: of a program that embeds the server, or of a test.
	Others []runtime.Kind `yaml:"-"`
}

// list returns all kinds.
func (r *Runtimes) list() []runtime.Kind {
	all := []runtime.Kind{&r.Native, &r.Docker, &r.Kubernetes}
	for _, name := range slices.Sorted(maps.Keys(r.Clusters)) {
		if r.Clusters[name] == nil { // nothing is below its name
			r.Clusters[name] = &kubernetes.Kind{}
		}
		all = append(all, r.Clusters[name].Further(name, &r.Kubernetes))
	}
	return append(all, r.Others...)
}

// clusterNames are those that a cluster may have.
var clusterNames = regexp.MustCompile(`^[a-z][a-z0-9-]{0,29}$`)

// checkClusters checks the names of clusters. What is named is asked for by that.
func (r *Runtimes) checkClusters() error {
	r.list() // gives them their names
	taken := []string{r.Native.Name(), r.Docker.Name(), kubernetes.Name}
	for _, name := range slices.Sorted(maps.Keys(r.Clusters)) {
		switch {
		case !clusterNames.MatchString(name):
			return fault.InvalidField("clusters", "%q is not a valid name of a runtime: it takes up to 30 of a-z, 0-9 and -, a letter first", sandbox.Clip(name, 40))
		case slices.Contains(taken, name):
			return fault.InvalidField("clusters", "%q is a runtime's name already", name).WithRemedy("name the cluster otherwise")
		}
	}
	for _, k := range r.Clusters {
		k.Want()
	}
	return nil
}

// named returns the kind that has the name, or nil.
func (r *Runtimes) named(name string) runtime.Kind {
	for _, k := range r.list() {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// check checks the names and the sections. A kind that is named is asked for by that.
func (r *Runtimes) check() error {
	if err := r.checkClusters(); err != nil {
		return err
	}
	for i, name := range r.Names {
		k := r.named(name)
		if k == nil {
			return fault.InvalidField("runtimes", "%q is no runtime: there are %s", sandbox.Clip(name, 40), strings.Join(r.all(), ", "))
		}
		if slices.Contains(r.Names[:i], name) {
			return fault.InvalidField("runtimes", "%s is named twice", name)
		}
		if o, ok := k.(runtime.Optional); ok {
			o.Want()
		}
	}
	for _, k := range r.list() {
		if err := k.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runtimes) all() (names []string) {
	for _, k := range r.list() {
		names = append(names, k.Name())
	}
	return names
}

// wanted returns those of the list that the configuration asks for. The first is the default runtime
// of sandboxes.
func (r *Runtimes) wanted() (out []runtime.Kind) {
	for _, name := range r.Names {
		if k := r.named(name); k != nil {
			out = append(out, k)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, k := range r.list() {
		if o, ok := k.(runtime.Optional); !ok || o.Wanted() {
			out = append(out, k)
		}
	}
	return out
}

// host returns the kind whose disks belong to the data directory, nil if the server has none: the
// identity knows one store of disks. A second kind with a store of its own needs fields there.
func (r *Runtimes) host() runtime.HostKind {
	for _, k := range r.wanted() {
		if h, ok := k.(runtime.HostKind); ok {
			return h
		}
	}
	return nil
}

// bringsImages reports whether images that only references name can come for sandboxes of the default runtime.
func (r *Runtimes) bringsImages() bool {
	usual := r.wanted()[0]
	return usual.Name() == r.Docker.Name() || r.onCluster(usual.Name())
}

// onCluster reports whether a runtime is of the kind kubernetes.
func (r *Runtimes) onCluster(name string) bool {
	return name == kubernetes.Name || r.Clusters[name] != nil
}

// disks returns the kind whose disks a backup may have, whether or not the server has it.
func (r *Runtimes) disks() runtime.HostKind { return &r.Native }

// capabilities returns those that a container's root has at most, and all that there are.
func capabilities() (have, known []string) { return docker.Capabilities(), docker.KnownCapabilities() }

// podContainer returns what the container of a sandbox's pod is called.
func podContainer() string { return kubernetes.Container }

// place returns where a kind keeps its files.
func place(k runtime.Kind, data, namespace string) runtime.Place {
	dir := k.Name()
	if _, ok := k.(*kubernetes.Kind); ok && dir != kubernetes.Name {
		dir = filepath.Join("clusters", dir) // the operator's name, which may be that of another directory
	}
	return runtime.Place{Dir: filepath.Join(data, dir), Namespace: namespace}
}

// open opens the drivers of all kinds, by name, and adds their closing to down.
func (r *Runtimes) open(ctx context.Context, data string, self identity, opts Options, images runtime.Publisher, down *cleanup.Stack, log *slog.Logger) (map[string]runtime.Driver, error) {
	program := opts.Agent
	if program == nil {
		var err error
		if program, err = embedded.Program(); err != nil {
			return nil, err
		}
	}
	drivers := make(map[string]runtime.Driver)
	wanted := r.wanted()
	for _, k := range wanted {
		d, err := k.Open(ctx, runtime.OpenOptions{
			Place: place(k, data, self.Namespace), Installation: self.ofStore(opts.Adopt), Agent: program, Publisher: images, Logger: log, Patient: len(wanted) > 1,
		})
		if err != nil {
			return nil, err
		}
		down.Add(func() { report(log, "close the "+k.Name()+" runtime", d.Close()) })
		drivers[k.Name()] = d
	}
	return drivers, nil
}

// hostDrivers returns the drivers whose disks have records.
type hostDrivers []runtime.HostDriver

func hostDriversOf(drivers map[string]runtime.Driver) (out hostDrivers) {
	for _, d := range drivers {
		if h, ok := d.(runtime.HostDriver); ok {
			out = append(out, h)
		}
	}
	return out
}

// identified reports whether all stores of disks have the installation's id.
func (h hostDrivers) identified() bool {
	for _, d := range h {
		if !d.Identified() {
			return false
		}
	}
	return len(h) > 0
}

// Pending reports whether something was made that need not be on the disk yet.
func (h hostDrivers) Pending() bool {
	return slices.ContainsFunc(h, runtime.HostDriver.Pending)
}

// Persist writes everything made so far to the disk.
func (h hostDrivers) Persist() (err error) {
	for _, d := range h {
		err = cmp.Or(err, d.Persist())
	}
	return err
}

// MarkRecorded reports to the drivers that what was made before at is recorded.
func (h hostDrivers) MarkRecorded(at time.Time) (err error) {
	for _, d := range h {
		err = cmp.Or(err, d.MarkRecorded(at))
	}
	return err
}

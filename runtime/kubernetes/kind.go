// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sandpit.dev/blob/configured"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// Kind is the kubernetes runtime as a server is told of it.
type Kind struct {
	// Kubeconfig is the path of a file that says how the API server is reached, in-cluster for that of the pod which the server runs
	// in, or auto: what KUBECONFIG says, else the pod's, else .kube/config in the home. "": the server has no kubernetes runtime.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context is one of the kubeconfig; "": its current one.
	Context string `yaml:"context"`
	// Namespace is the cluster's in which sandboxes are; "": that of the context, or of the pod.
	Namespace string `yaml:"namespace"`
	// Registry is what the names of images begin with, as registry.example/sandpit: the server puts them there, and nodes pull them. "": they
	// are on the nodes already, as localhost/sandpit/….
	Registry string `yaml:"registry"`
	// StorageClass is that of sandboxes' claims; "": the cluster's default.
	StorageClass string `yaml:"storage_class"`
	// VolumeClass is that of volumes' claims; "": StorageClass.
	VolumeClass string `yaml:"volume_class"`
	// VolumeAccess says who mounts a volume: ReadWriteMany, pods of any node, where its class can that, or ReadWriteOnce, those of one node at a time. "": the
	// latter.
	VolumeAccess string `yaml:"volume_access"`
	// Snapshots is where what snapshots hold is kept, in parts that several share; nothing: in the data directory.
	Snapshots configured.Place `yaml:"snapshots"`
	// RuntimeClass is that of pods, as gvisor or kata; "": the cluster's default.
	RuntimeClass string `yaml:"runtime_class"`
	// Overcommit is what limits of processors and memory are divided by for what pods request of their nodes; 0: 1, a pod's limits are kept free for it.
	Overcommit float64 `yaml:"overcommit"`
	// Reach says how agents are reached: pod, at their pods' addresses, forward, through the API server, or auto: pod where the server runs in a pod of
	// the cluster, else forward. "": auto.
	Reach string `yaml:"reach"`
	// UserNamespaces has root in a pod be nobody on its node, where nodes can do that.
	UserNamespaces bool `yaml:"user_namespaces"`
	// Root says what of a sandbox outlives a stop: auto, all that it wrote, where pods have user namespaces and the namespace of the cluster admits
	// that they mount there, or image, what is in the directories of its disk. "": auto.
	Root      string `yaml:"root"`
	Placement `yaml:",inline"`

	name     string // of a runtime beside the one that is called kubernetes; "": it is that one
	variable string // KUBECONFIG
	home     string // HOME
}

var (
	_ runtime.Kind     = (*Kind)(nil)
	_ runtime.Optional = (*Kind)(nil)
)

// Values of fields that mean something else than themselves.
const (
	auto         = "auto"
	inCluster    = "in-cluster"
	reachPod     = "pod"
	reachForward = "forward"
	rootImage    = "image"
)

// Name is that of the runtime, and of its section. Further ones have names of their own.
const Name = "kubernetes"

// Name returns "kubernetes", or the name of a further runtime.
func (k *Kind) Name() string { return cmp.Or(k.name, Name) }

// Further makes k a runtime with a name of its own, in the environment of another.
func (k *Kind) Further(name string, of *Kind) *Kind {
	k.name, k.variable, k.home = name, of.variable, of.home
	k.Snapshots.S3.Environment = of.Snapshots.S3.Environment
	return k
}

// section is the key of the configuration that k is.
func (k *Kind) section() string {
	if k.name != "" {
		return "clusters." + k.name
	}
	return Name
}

// Wanted reports whether the section names a cluster.
func (k *Kind) Wanted() bool { return k.Kubeconfig != "" }

// Want asks for it: of the cluster that kubectl would use, where none is named.
func (k *Kind) Want() { k.Kubeconfig = cmp.Or(k.Kubeconfig, auto) }

// Variables returns those of the section, and kubectl's own, which count where the kubeconfig is auto. Further runtimes have none.
func (k *Kind) Variables() map[string]any {
	if k.name != "" {
		return nil
	}
	all := map[string]any{
		"SANDPIT_KUBERNETES_KUBECONFIG": &k.Kubeconfig, "SANDPIT_KUBERNETES_CONTEXT": &k.Context, "SANDPIT_KUBERNETES_NAMESPACE": &k.Namespace,
		"SANDPIT_KUBERNETES_REGISTRY": &k.Registry, "SANDPIT_KUBERNETES_STORAGE_CLASS": &k.StorageClass, "SANDPIT_KUBERNETES_RUNTIME_CLASS": &k.RuntimeClass,
		"SANDPIT_KUBERNETES_VOLUME_CLASS": &k.VolumeClass, "SANDPIT_KUBERNETES_VOLUME_ACCESS": &k.VolumeAccess,
		"SANDPIT_KUBERNETES_REACH": &k.Reach, "KUBECONFIG": &k.variable, "HOME": &k.home,
	}
	for name, key := range k.Snapshots.S3.Environment.Variables() {
		all[name] = key
	}
	return all
}

// Check checks the section.
func (k *Kind) Check() error {
	for _, f := range []struct {
		name, value string
		wrong       []string
	}{
		{"namespace", k.Namespace, validation.IsDNS1123Label(k.Namespace)},
		{"storage_class", k.StorageClass, validation.IsDNS1123Subdomain(k.StorageClass)},
		{"volume_class", k.VolumeClass, validation.IsDNS1123Subdomain(k.VolumeClass)},
		{"runtime_class", k.RuntimeClass, validation.IsDNS1123Subdomain(k.RuntimeClass)},
	} {
		if f.value != "" && len(f.wrong) > 0 {
			return fault.InvalidField(k.section()+"."+f.name, "%q is not a valid name in a cluster: %s", sandbox.Clip(f.value, 80), f.wrong[0])
		}
	}
	switch k.Reach {
	case "", auto, reachPod, reachForward:
	default:
		return fault.InvalidField(k.section()+".reach", "%q is none of auto, pod and forward", sandbox.Clip(k.Reach, 40))
	}
	switch k.Root {
	case "", auto, rootImage:
	default:
		return fault.InvalidField(k.section()+".root", "%q is neither auto nor image", sandbox.Clip(k.Root, 40))
	}
	switch corev1.PersistentVolumeAccessMode(k.VolumeAccess) {
	case "", corev1.ReadWriteMany, corev1.ReadWriteOnce:
	default:
		return fault.InvalidField(k.section()+".volume_access", "%q is neither %s nor %s", sandbox.Clip(k.VolumeAccess, 40), corev1.ReadWriteMany, corev1.ReadWriteOnce)
	}
	if k.Overcommit != 0 && (k.Overcommit < 1 || k.Overcommit > 1000) {
		return fault.InvalidField(k.section()+".overcommit", "%v is not from 1 to 1000", k.Overcommit)
	}
	if strings.HasSuffix(k.Registry, "/") || strings.ContainsAny(k.Registry, " @\n") || k.Registry != "" && !strings.Contains(k.Registry, "/") {
		return fault.InvalidField(k.section()+".registry", "%q is not a registry and a path in it", sandbox.Clip(k.Registry, 80)).WithRemedy("write it as registry.example/sandpit")
	}
	if err := k.checkPlacement(); err != nil {
		return err
	}
	if err := k.Snapshots.Check(k.section() + ".snapshots"); err != nil {
		return err
	}
	for name, path := range map[string]string{"dir": k.Snapshots.Dir, "s3.credentials_file": k.Snapshots.S3.CredentialsFile} {
		if path != "" && !filepath.IsAbs(path) {
			return fault.InvalidField(k.section()+".snapshots."+name, "%q is not an absolute path", sandbox.Clip(path, 80))
		}
	}
	if !k.Wanted() && (!k.Placement.isZero() || k.Context != "" || k.Namespace != "" || k.Registry != "" || k.StorageClass != "" || !k.Snapshots.IsZero() || k.VolumeClass != "" || k.VolumeAccess != "" || k.RuntimeClass != "" || k.Reach != "" || k.Root != "" || k.Overcommit != 0 || k.UserNamespaces) {
		return fault.InvalidField(k.section()+".kubeconfig", "it is not set, and other fields of %s are", k.section()).
			WithRemedy("set it to the path of a kubeconfig, to in-cluster or to auto")
	}
	return nil
}

// environment returns where the API server is looked for, and whether this process runs in a pod of its cluster.
func (k *Kind) environment() (kubeapi.Environment, bool) {
	file := k.Kubeconfig
	if file == auto {
		file = k.variable
		if file == "" && kubeapi.InPod() {
			file = inCluster
		}
		if file == "" && k.home != "" {
			file = filepath.Join(k.home, ".kube", "config")
		}
	}
	if file == inCluster {
		return kubeapi.Environment{}, true
	}
	return kubeapi.Environment{Kubeconfig: file, Context: k.Context}, false
}

// namespaceOf is what objects of a data directory are known by. Two runtimes of one server may be in one namespace of a cluster.
func (k *Kind) namespaceOf(p runtime.Place) string {
	switch {
	case p.Namespace != "" && k.name == "":
		return p.Namespace
	case p.Namespace != "":
		sum := sha256.Sum256([]byte(p.Namespace + "/" + k.name))
		return hex.EncodeToString(sum[:6])
	}
	sum := sha256.Sum256([]byte(p.Dir))
	return hex.EncodeToString(sum[:6])
}

func (k *Kind) options(o runtime.OpenOptions) (Options, error) {
	api, inside := k.environment()
	out := Options{
		Dir: o.Dir, Namespace: k.namespaceOf(o.Place), API: api, Space: k.Namespace, Images: k.Registry, StorageClass: k.StorageClass, VolumeClass: k.VolumeClass, VolumeAccess: k.VolumeAccess, RuntimeClass: k.RuntimeClass,
		Overcommit: k.Overcommit, Direct: k.Reach == reachPod || k.Reach != reachForward && inside, Users: k.UserNamespaces, ImageRoot: k.Root == rootImage,
		Placement: k.Placement, ProveEvery: proveEvery, Agent: o.Agent, Patient: o.Patient, Logger: o.Logger,
	}
	if k.Registry != "" {
		out.Publisher = o.Publisher
	}
	var err error
	if out.Snapshots, err = k.Snapshots.Open(purpose(k.section()), out.Namespace); err != nil {
		return Options{}, err
	}
	return out, nil
}

// Open opens the driver.
func (k *Kind) Open(ctx context.Context, o runtime.OpenOptions) (runtime.Driver, error) {
	options, err := k.options(o)
	if err != nil {
		return nil, err
	}
	d, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Inspect looks for pods that run and should not, and for directories of sandboxes whose claims are gone.
func (k *Kind) Inspect(ctx context.Context, p runtime.Place, undue func(sandbox.ID) string, mend bool) ([]runtime.Finding, error) {
	if _, err := os.Lstat(p.Dir); os.IsNotExist(err) {
		return nil, nil
	}
	options, err := k.options(runtime.OpenOptions{Place: p})
	if err != nil {
		return nil, err
	}
	options.ProveEvery = 0
	d, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	found, err := d.inspect(ctx, undue, mend)
	return found, errors.Join(err, d.Close())
}

func (d *Driver) inspect(ctx context.Context, undue func(sandbox.ID) string, mend bool) ([]runtime.Finding, error) {
	list, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []runtime.Finding
	for _, h := range list {
		why := undue(h.ID)
		if why == "" {
			continue
		}
		i, err := d.Open(ctx, h)
		if fault.Is(err, fault.NotFound) { // it was removed meanwhile
			continue
		}
		if err != nil {
			return out, err
		}
		if _, over := i.(*Instance).life(); over != nil { //nolint:forcetypeassert // Open returns no other
			continue
		}
		f := runtime.Finding{Name: "sandbox " + string(h.ID), What: "its pod runs: " + why}
		if mend {
			if f.Err = i.Stop(ctx, 0); f.Err == nil {
				f.Done = "it was stopped"
			}
		}
		out = append(out, f)
	}
	return out, nil
}

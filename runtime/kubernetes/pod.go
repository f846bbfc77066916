// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Where the agent's things are in a pod.
const (
	insideAgent   = "/.sandpit/agent" // the image with it
	programName   = "sandpit-agent"
	insideProgram = insideAgent + "/" + programName
	insideLog     = "/.sandpit/log" // of processes, on the claim
)

// Container is the name of a pod's container.
const Container = "sandbox"

// The pod's volumes.
const (
	diskVolume  = "disk"
	agentVolume = "agent"
)

// agentPort is where the agent listens, on all addresses of its pod. The policy lets the server come there.
const agentPort = 26500

// userID is that of commands inside.
const (
	userID   = 1000
	homes    = "/home"
	userHome = homes + "/sandbox"
)

// agentThreads and commandFiles are as on an Engine: see package docker.
const (
	agentThreads = 32
	commandFiles = 4096
)

// imageVolumes is the first minor version whose nodes mount images unless they are told otherwise.
const imageVolumes = 35

// onDisk are the directories that are on the claim, by their names there.
func onDisk() map[string]string {
	return map[string]string{"workspace": sandbox.Workspace, "home": homes, "artifacts": sandbox.Artifacts, "log": insideLog}
}

// diskDirs are those of them that are the sandbox's own.
func diskDirs() []string { return []string{sandbox.Workspace, sandbox.Artifacts, homes} }

// agentConfig is what the agent reads, see package agent/boot/plain.
type agentConfig struct {
	Address      string            `json:"address"`
	Server       *handshake.Public `json:"server"`
	Log          string            `json:"log"`
	UID          uint32            `json:"uid"`
	GID          uint32            `json:"gid"`
	Root         bool              `json:"root"`
	Home         string            `json:"home"`
	Disk         []string          `json:"disk"`
	DiskAt       string            `json:"disk_at,omitempty"`
	MaxLogBytes  int64             `json:"max_log_bytes,omitempty"`
	Threads      int               `json:"threads"`
	OpenFiles    uint32            `json:"open_files"`
	FewSockets   bool              `json:"few_sockets"`
	Overlay      string            `json:"overlay,omitempty"`
	FreshOverlay bool              `json:"fresh_overlay,omitempty"`
	Start        *agentStart       `json:"start,omitempty"`
}

// capabilities are those of an Engine's containers.
func capabilities() []corev1.Capability {
	return []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}
}

// sysctls have commands of the user open no sockets of pings, and no ports that the network's may be: nodes often allow both. All levels of PodSecurity admit them.
func sysctls() []corev1.Sysctl {
	return []corev1.Sysctl{{Name: "net.ipv4.ping_group_range", Value: "1 0"}, {Name: "net.ipv4.ip_unprivileged_port_start", Value: "1024"}}
}

// ephemeralMB is the least that a pod may write beside its claim.
const ephemeralMB = 1024

// resources are a pod's limits, and what is requested of its node for them.
func (d *Driver) resources(l sandbox.Limits) corev1.ResourceRequirements {
	over := max(1, d.o.Overcommit)
	milli, bytes := int64(math.Ceil(l.CPU*1000)), int64(l.MemoryMB)<<20
	written := *resource.NewQuantity(int64(max(l.DiskMB, ephemeralMB))<<20, resource.BinarySI)
	return corev1.ResourceRequirements{
		Limits: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(bytes, resource.BinarySI),
			corev1.ResourceEphemeralStorage: written,
		},
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(max(1, int64(float64(milli)/over)), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(float64(bytes)/over), resource.BinarySI),
			// What a pod writes beside its claim is bounded, and nothing is kept free for it.
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(0, resource.BinarySI),
		},
	}
}

// references are those of a pod's images.
type references struct{ image, agent string }

// agentArgs returns the arguments of an agent that agrees on a key with the server, and keeps logs in a directory. The disk is in its places, or below diskAt.
func agentArgs(server handshake.Public, log, diskAt string, maxLogBytes int64) ([]string, error) {
	config, err := json.Marshal(agentConfig{
		Address: "0.0.0.0:" + strconv.Itoa(agentPort), Server: &server, Log: log, UID: userID, GID: userID, Root: true, Home: userHome,
		Disk: diskDirs(), DiskAt: diskAt, MaxLogBytes: maxLogBytes, Threads: agentThreads, OpenFiles: commandFiles, FewSockets: true,
	})
	return []string{"serve", string(config)}, err
}

// pod returns the pod of a sandbox.
func (d *Driver) pod(spec runtime.Spec, images references, server handshake.Public) (*corev1.Pod, error) {
	diskAt := ""
	if len(spec.Mounts) > 0 {
		diskAt = insideDisk
	}
	args, err := agentArgs(server, insideLog, diskAt, spec.Limits.LogBytes())
	if err != nil {
		return nil, err
	}
	no, root, grace := false, int64(0), int64(1)
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: objectName(spec.ID), Labels: d.labels(spec.ID),
			Annotations: map[string]string{annotationImage: spec.Image.Digest, annotationProject: spec.Project},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace,
			// There is no way out to a server of names.
			DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}},
			SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, Sysctls: sysctls()},
			Containers: []corev1.Container{{
				Name: Container, Image: images.image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{insideProgram}, Args: args, Env: agentEnv(), WorkingDir: "/", Resources: d.resources(spec.Limits),
				SecurityContext: &corev1.SecurityContext{
					RunAsUser: &root, RunAsGroup: &root, Privileged: &no, AllowPrivilegeEscalation: &no,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities()},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: agentVolume, MountPath: insideAgent, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: diskVolume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: objectName(spec.ID)}}},
			},
		},
	}
	if len(validation.IsDNS1123Label(spec.Hostname)) == 0 {
		p.Spec.Hostname = spec.Hostname
	}
	d.isolate(&p.Spec)
	c := &p.Spec.Containers[0]
	for name, path := range onDisk() {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: diskVolume, MountPath: path, SubPath: name})
	}
	d.bringAgent(&p.Spec, images.agent)
	if len(spec.Mounts) > 0 {
		err = d.mountVolumes(p, spec.Mounts)
	}
	return p, err
}

// isolate sets what the configuration says of all pods.
func (d *Driver) isolate(p *corev1.PodSpec) {
	d.o.Placement.apply(p, map[string]string{labelServer: d.namespace})
	if d.o.RuntimeClass != "" {
		p.RuntimeClassName = &d.o.RuntimeClass
	}
	if d.o.Users {
		p.HostUsers = new(bool)
	}
}

// bringAgent has the image with the agent mounted, or copied from by a container that runs before.
func (d *Driver) bringAgent(p *corev1.PodSpec, image string) {
	if d.mountsImages() {
		p.Volumes = append(p.Volumes, corev1.Volume{Name: agentVolume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent}}})
		return
	}
	size := resource.NewQuantity(64<<20, resource.BinarySI)
	p.Volumes = append(p.Volumes, corev1.Volume{Name: agentVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: size}}})
	s := *p.Containers[0].SecurityContext
	s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	yes := true
	s.ReadOnlyRootFilesystem = &yes
	p.InitContainers = append(p.InitContainers, corev1.Container{
		Name: agentVolume, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/" + programName, "install", insideAgent},
		SecurityContext: &s, VolumeMounts: []corev1.VolumeMount{{Name: agentVolume, MountPath: insideAgent}}, Resources: p.Containers[0].Resources,
	})
}

// mountsImages reports whether nodes of the cluster mount images.
func (d *Driver) mountsImages() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.minor >= imageVolumes
}

// claim returns the claim of a sandbox, which is its disk.
func (d *Driver) claim(spec runtime.Spec) *corev1.PersistentVolumeClaim {
	size := *resource.NewQuantity(int64(spec.Limits.DiskMB)<<20, resource.BinarySI)
	c := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: objectName(spec.ID), Labels: d.labels(spec.ID),
			Annotations: map[string]string{annotationImage: spec.Image.Digest, annotationProject: spec.Project},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	if d.o.StorageClass != "" {
		c.Spec.StorageClassName = &d.o.StorageClass
	}
	return c
}

// agentEnv keeps the agent small: one thread of Go code, and a heap that is collected early.
func agentEnv() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "GOMAXPROCS", Value: "1"}, {Name: "GOGC", Value: "25"}, {Name: "GOMEMLIMIT", Value: "12MiB"},
		{Name: "GODEBUG", Value: "madvdontneed=1,containermaxprocs=0,updatemaxprocs=0"}, {Name: "PATH", Value: "/usr/local/bin:/usr/bin:/bin"}, {Name: "TZ", Value: "UTC"},
	}
}

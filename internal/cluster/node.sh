# Process 1 of a node: node.sh DIR GROUP NAME ADDRESS CLUSTER NAMES. The configuration of all its components is in DIR. The first
# node has the directory of the cluster, CLUSTER, for DIR, and the components that a cluster has once.
# NAMES is the program of CoreDNS; without one, services have neither addresses nor names.
# It begins in namespaces of its own for processes, mounts and the network.
set -e
dir=$1 group=$2 name=$3 address=$4 cluster=$5 names=$6
first=; if [ "$dir" = "$cluster" ]; then first=1; fi

# What the node makes of control groups it makes below its own, and sees nothing else.
if [ -z "$NODE_GROUPED" ]; then
	for hierarchy in /sys/fs/cgroup/*/; do
		mkdir -p "$hierarchy$group"
		for file in cpuset.cpus cpuset.mems; do
			if [ -e "$hierarchy$group/$file" ]; then cat "$hierarchy$file" >"$hierarchy$group/$file"; fi
		done
		echo 0 >"$hierarchy$group/cgroup.procs"
	done
	NODE_GROUPED=1 exec unshare --cgroup bash "$dir/node.sh" "$@"
fi

mount -t proc proc /proc
hostname "$name"
hierarchies=$(cd /sys/fs/cgroup && echo *)
umount -R -l /sys # as this namespace has it: control groups that are mounted twice the kubelet finds in the wrong place
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
for h in $hierarchies; do
	mkdir "/sys/fs/cgroup/$h"
	case $h in
	systemd) mount -t cgroup -o none,name=systemd cgroup "/sys/fs/cgroup/$h" ;;
	unified) mount -t cgroup2 cgroup2 "/sys/fs/cgroup/$h" ;;
	*) mount -t cgroup -o "$h" cgroup "/sys/fs/cgroup/$h" ;;
	esac
done

# The kubelet sets what is the whole machine's. It finds it set, in files of its own. A second, clean /proc
# lets user namespaces mount theirs.
mkdir -p "$dir/proc" "$dir/sysctl"
mount -t proc proc "$dir/proc"
while read -r file value; do
	echo "$value" >"$dir/sysctl/${file##*/}"
	mount --bind "$dir/sysctl/${file##*/}" "/proc/sys/$file"
done <<-SYSCTLS
	vm/overcommit_memory 1
	vm/panic_on_oom 0
	kernel/panic 10
	kernel/panic_on_oops 1
SYSCTLS

for place in /run /opt; do mount -t tmpfs -o mode=755 tmpfs "$place"; done
mkdir -p /run/netns /run/lock
for place in /var/lib /var/log; do
	mkdir -p "$dir/node$place"
	mount --bind "$dir/node$place" "$place"
done
mkdir -p /var/lib/kubelet /var/lib/cni /var/log/pods "$cluster/volumes" /tmp/hostpath_pv
mount --bind "$cluster/volumes" /tmp/hostpath_pv # where the provisioner of volumes has them
mount --make-rshared /

# There is no way out of its network: the other end of the first node's only link is in it. Other nodes get theirs.
ip link set lo up
if [ "$first" ]; then
	ip link add eth0 type veth peer name eth0peer
	ip link set eth0peer up
fi
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$address/24" dev eth0
ip link set eth0 up
ip route add default via "${address%.*}.1"
for s in net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables; do echo 1 >"/proc/sys/$s"; done

# run starts a component, and starts it again when it ends, unless it is held.
mkdir -p "$dir/log" "$dir/pids" "$dir/held"
run() {
	component=$1
	shift
	while :; do
		"$@" >>"$dir/log/$component" 2>&1 &
		echo $! >"$dir/pids/$component"
		wait $! || :
		sleep 0.1
		while [ -e "$dir/held/$component" ]; do sleep 0.1; done
	done &
}
pki=$dir/pki
kubectl() { kubernetes kubectl --kubeconfig "$cluster/pki/admin.kubeconfig" "$@"; }
run containerd containerd -c "$dir/containerd.toml"

if [ "$first" ]; then
run etcd kubernetes etcd --data-dir "$dir/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync --log-level warn
run kube-apiserver kubernetes kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address="$address" --secure-port=6443 --cert-dir="$dir/certs" \
	--tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
	--kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" --kubelet-client-key="$pki/apiserver-kubelet-client.key" \
	--kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
	--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/sa.key" --service-account-signing-key-file="$pki/sa.key" \
	--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --service-cluster-ip-range=10.96.0.0/16 --allow-privileged=true

until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.1; done # the controllers end where their rights are not there yet
own() { echo "--kubeconfig=$pki/$1.kubeconfig --authentication-kubeconfig=$pki/$1.kubeconfig --authorization-kubeconfig=$pki/$1.kubeconfig --leader-elect=false --bind-address=127.0.0.1 --cert-dir=$dir/certs"; }
run kube-controller-manager kubernetes kube-controller-manager $(own controllers) --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" \
	--use-service-account-credentials=true --kube-api-qps=1000 --kube-api-burst=2000 --enable-hostpath-provisioner=true \
	--cluster-cidr=10.244.0.0/16 --allocate-node-cidrs=true --service-cluster-ip-range=10.96.0.0/16 \
	--cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key"
run kube-scheduler kubernetes kube-scheduler $(own scheduler)
kubectl apply -f "$dir/objects.yaml" >/dev/null
else
	ip route add 10.244.0.0/24 via "${address%.*}.2"
fi

until ctr version >/dev/null 2>&1; do sleep 0.1; done
ctr -n k8s.io images import --digests=false "$dir/pause.tar" >/dev/null
run kubelet kubernetes kubelet --config="$dir/kubelet.yaml" --kubeconfig="$pki/kubelet.kubeconfig" --node-ip="$address" --hostname-override="$name" --root-dir=/var/lib/kubelet
run policies kubernetes policies -kubeconfig "$cluster/pki/admin.kubeconfig"
if [ -n "$names" ]; then
	run kube-proxy kubernetes kube-proxy --config="$dir/proxy.yaml" --hostname-override="$name"
	run coredns "$names" -conf "$dir/Corefile"
fi
until kubectl wait --for=condition=Ready "node/$name" --timeout=60s >/dev/null 2>&1 && kubectl get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done
if [ -n "$names" ]; then # their first rules, and their first answer
	until nft list table ip kube-proxy 2>/dev/null | grep -q 10.96.0.1 && (: >"/dev/tcp/$address/53") 2>/dev/null; do sleep 0.1; done
fi
touch "$dir/ready"
trap 'exit 0' TERM
while :; do sleep 3600 & wait $! || :; done

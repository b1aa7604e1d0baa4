// The program is Kueue for tests: its own controllers for queues, Workloads and batch/v1 Jobs, and its scheduler, as
// cmd/kueue starts them. It leaves out the webhooks, which need certificates, and the other kinds of jobs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuev1beta1 "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/job"
	_ "sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
)

func main() {
	kubeconfig := flag.String("config-file", "", "file by which the API server is reached")
	gates := flag.String("feature-gates", "", "feature gates of Kueue")
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), *kubeconfig, *gates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, gates string) error {
	ctrl.SetLogger(zap.New())
	if err := utilfeature.DefaultMutableFeatureGate.Set(gates); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	rest.QPS, rest.Burst = 200, 400
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kueue.AddToScheme, kueuev1beta1.AddToScheme, config.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	settings := &config.Configuration{}
	scheme.Default(settings)
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	client, index := manager.GetClient(), manager.GetFieldIndexer()
	cache := schdcache.New(client)
	requeuer := qcache.NewRequeuer()
	expected := expectations.New()
	queues := qcache.NewManager(client, cache, requeuer, qcache.WithPreemptionExpectations(expected))
	jobframework.EnableIntegration(job.FrameworkName)
	options := []jobframework.Option{
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithEnabledFrameworks([]string{job.FrameworkName}),
		jobframework.WithCache(cache),
		jobframework.WithQueues(queues),
	}
	if err := indexer.Setup(ctx, index); err != nil {
		return err
	}
	if err := job.SetupIndexes(ctx, index); err != nil {
		return err
	}
	if failed, err := core.SetupControllers(manager, queues, cache, settings, nil, expected, nil); err != nil {
		return fmt.Errorf("%s: %w", failed, err)
	}
	recorder := manager.GetEventRecorderFor(constants.JobControllerName)
	jobs, err := job.NewReconciler(ctx, client, index, recorder, options...)
	if err != nil {
		return err
	}
	if err := jobs.SetupWithManager(manager); err != nil {
		return err
	}
	admission := scheduler.New(queues, cache, client, manager.GetEventRecorderFor(constants.AdmissionName),
		scheduler.WithPreemptionExpectations(expected))
	for _, part := range []interface{ Start(context.Context) error }{requeuer, admission} {
		if err := manager.Add(part); err != nil {
			return err
		}
	}
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	return manager.Start(ctx)
}

//! Changes a session so that it uses the workers of a [`Cluster`].

use std::sync::Arc;

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt};

use super::client::{Cluster, FIXED};
use super::cluster_planner::ClusterPlanner;
use super::codec::SerrateCodec;
use super::settings::{ClusterOptions, SentSettings};
use super::tasks::{count_tasks, divide_leaf};

impl Cluster {
    /// Changes a session so that its queries use the workers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serrate::cluster::{ClientConfig, Cluster};
    /// let ctx = serrate::sql::session();
    /// let before = ctx.copied_config().target_partitions();
    /// Cluster::new(&ClientConfig::new("127.0.0.1:7100,127.0.0.1:7101"))?.attach(&ctx);
    /// // Each of the two workers gets as many partitions as the session had. A single worker
    /// // gets as many in each of its two tasks.
    /// assert_eq!(ctx.copied_config().target_partitions(), 2 * before);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach(&self, context: &SessionContext) {
        let mut builder = context.clone().into_state_builder();
        let inner = builder.query_planner().take();
        let config = builder.config().get_or_insert_with(SessionConfig::new);
        // A scan is divided into one task per worker, and each task gets as many partitions as a
        // session without workers has. A single worker runs two tasks, because a plan with one task
        // would not be divided.
        let partitions = config.target_partitions().saturating_mul(self.shared.all.len().max(2));
        *config = config.clone().with_target_partitions(partitions);
        let builder = builder
            .with_distributed_planner()
            .with_distributed_worker_resolver(self.clone())
            .with_distributed_channel_resolver(self.shared.channels.clone())
            .with_distributed_user_codec(SerrateCodec)
            .with_distributed_option_extension(SentSettings::default())
            .with_distributed_desired_task_count_handler(count_tasks)
            .with_distributed_scale_up_leaf_node_handler(divide_leaf);
        let mut builder = builder;
        if let Some(config) = builder.config() {
            let options = config.options_mut();
            options.extensions.insert(ClusterOptions::default());
            // datafusion-distributed switches this option off. It must be on, because Serrate's
            // look-up functions read their look-up table through a scalar subquery.
            options.optimizer.enable_physical_uncorrelated_scalar_subquery = true;
            for (name, value) in FIXED {
                let _ = options.set(name, value);
            }
        }
        let planner = ClusterPlanner::new(inner, self.clone());
        // Replaces the state within the session, and makes no new session: the provider of tables
        // for file paths holds a reference to the state of this session.
        let state = builder.with_query_planner(Arc::new(planner)).build();
        *context.state_ref().write() = state;
    }
}

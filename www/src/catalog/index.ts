//! The entry `inpage/catalog`: models to choose from. It has no part in an engine whose model is not named.

export { catalog } from "./models.js";
export { type Recommendation, type RecommendOptions, recommendModels } from "./recommend.js";
export type {
  CatalogFacts,
  CatalogFiles,
  CatalogModel,
  CatalogNumbers,
  CatalogSampling,
  CatalogTask,
} from "./types.js";

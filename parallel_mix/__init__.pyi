from parallel_mix.evaluate.crossval import crossval as crossval
from parallel_mix.evaluate.partitions import Protocol as Protocol
from parallel_mix.kernels.metrics.signatures import Signatures as Signatures
from parallel_mix.models.clusters.estimators import GeneralizedKMeans as GeneralizedKMeans
from parallel_mix.models.clusters.estimators import VertexSubstitution as VertexSubstitution
from parallel_mix.models.clusters.estimators import WardDistance as WardDistance
from parallel_mix.models.distances.pairwise import pairwise as pairwise
from parallel_mix.models.hlm.estimators import HLMClassifier as HLMClassifier
from parallel_mix.models.hlm.estimators import KernelHLMClassifier as KernelHLMClassifier
from parallel_mix.models.hmac.estimator import HMAC as HMAC
from parallel_mix.models.similarity.local_sda import LocalSDAClassifier as LocalSDAClassifier
from parallel_mix.models.similarity.neighbour_classifiers import AffinityKNNClassifier as AffinityKNNClassifier
from parallel_mix.models.similarity.neighbour_classifiers import KNNClassifier as KNNClassifier
from parallel_mix.models.similarity.neighbour_classifiers import KRIKNNClassifier as KRIKNNClassifier
from parallel_mix.models.similarity.neighbour_classifiers import KRRKNNClassifier as KRRKNNClassifier
from parallel_mix.models.similarity.neighbour_classifiers import VectorKNNClassifier as VectorKNNClassifier
from parallel_mix.models.similarity.svm import FeatureSVC as FeatureSVC
from parallel_mix.models.similarity.svm import LocalSVC as LocalSVC
from parallel_mix.models.similarity.svm import PotentialSVC as PotentialSVC
from parallel_mix.models.similarity.svm import SimilaritySVC as SimilaritySVC

__version__: str

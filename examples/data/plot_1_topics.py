"""
Topics of texts, with their words
=================================

A text is a sum of topics, and a topic is a list of words. The factorisation of a tf-idf matrix finds both.
"""

# %%
# 1200 short texts of random words from six lists. Each text is about one or two of the six topics; some
# words belong to several ("bank", "cell", "season").
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from lognmf import LogSparseNMF, metrics, plots

TOPICS = {
    "money": "bank market price share tax interest budget growth trade company investor fund currency debt",
    "river": "bank water river boat fish flood rain bridge lake shore stream valley ice spring season",
    "sport": "match goal team season player league score win cup referee stadium final champion defence",
    "biology": "cell gene protein tissue enzyme membrane species blood spring organ growth virus nerve dna",
    "phones": "phone screen battery cell network app camera market software chip user message price company",
    "kitchen": "fish sauce onion oil bread oven salt pepper butter garlic cook dish rice season spring",
}
FILLER = "the a this that is was has many new one more about with from also said year day people time"
rng = np.random.default_rng(0)


def write(topics):
    """A text of thirty to sixty words."""
    words = [rng.choice(TOPICS[rng.choice(topics)].split()) for _ in range(rng.integers(15, 30))]
    return " ".join(rng.permutation(words + list(rng.choice(FILLER.split(), len(words)))))


about = [rng.choice(list(TOPICS), size=rng.choice([1, 2], p=[0.7, 0.3]), replace=False) for _ in range(1200)]
texts = [write(topics) for topics in about]
print(texts[0])

# %%
# tf-idf gives rare words more weight and every text unit norm. The matrix is sparse, and stays sparse.
vectorizer = TfidfVectorizer(stop_words=FILLER.split())
X = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
model = LogSparseNMF(6, random_state=0).fit(X)
for number, part in enumerate(model.components_):
    print(f"topic {number}: {', '.join(words[part.argsort()[::-1][:5]])}")

# %%
# Words with several meanings stay in all their topics: "bank" belongs to money and to rivers, "spring" to
# rivers, biology and kitchens. Sparsity removes words that do not belong to a topic.
for word in ("bank", "spring"):
    topics = np.flatnonzero(model.components_[:, list(words).index(word)])
    print(f"{word}: topics {', '.join(map(str, topics))}")
plain = LogSparseNMF(6, alpha=0, beta=0, random_state=0).fit(X)
listed = np.array([[word in text.split() for word in words] for text in TOPICS.values()])
for name, found in {"alpha = 0": plain.components_, "auto": model.components_, "the lists": listed}.items():
    print(f"{name:9s} {np.mean(found == 0):.0%} zeros")

# %%
# The largest code of a text tells its main topic. For how many of the texts on a single topic is it right?
single = np.array([len(topics) == 1 for topics in about])
truth = [topics[0] for topics in about if len(topics) == 1]
accuracy = metrics.clustering_accuracy(truth, model.embedding_[single].argmax(axis=1))
print(f"{accuracy:.1%} of {single.sum()} texts")

# %%
# A new text is coded by the same topics.
new = vectorizer.transform(["the boat on the lake", "a goal in the final", "bread with butter from the oven"])
for text, code in zip(("boat", "goal", "bread"), model.transform(new), strict=True):
    print(f"{text}: topic {code.argmax()}")

# %%
# The six topics by their largest words.
plots.parts(model, feature_names=words)
